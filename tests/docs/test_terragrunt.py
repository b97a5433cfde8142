"""docs/how-to/terragrunt.md: its matrix is walked, and its addresses are evaluated."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.conftest import needs_terraform, readers
from tests.docs.walk import ROOT, Walk
from tests.e2e.terraform import BINARY
from tests.support.server import LiveServer

pytestmark = [pytest.mark.terraform, needs_terraform]
DOCUMENT = ROOT / "docs/how-to/terragrunt.md"
#: A directory below root.hcl, and the names in the address from each expression.
TREES = {
    "prod/network": "network/prod",
    "shop/network/prod": "shop/network/prod",
    "prod/eu-west-1/network": "network/prod-eu-west-1",
}


def test_addresses_match(place: Path) -> None:
    assert BINARY is not None
    expressions = re.findall(r'^ *state = (".*")$', DOCUMENT.read_text(), re.MULTILINE)
    for expression, (directory, names) in zip(expressions, TREES.items(), strict=True):
        done = subprocess.run(
            [BINARY, "console"],
            cwd=place,
            env=readers(place, {}),
            input=expression.replace("path_relative_to_include()", f'"{directory}"'),
            check=True,
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == f'"http://127.0.0.1:8000/api/v1/state/at/{names}"'


def test_matrix_of_addresses_works(place: Path, service: LiveServer) -> None:
    (token,) = service.tokens("state:read,state:write")
    configuration = 'terraform {\n  backend "http" {}\n}\nresource "terraform_data" "one" {}\n'
    (place / "main.tf").write_text(configuration)
    environment = {
        **readers(place, {}), "TF_HTTP_USERNAME": "token", "TF_HTTP_PASSWORD": token
    }  # fmt: skip

    assert Walk(place, environment, {"http://127.0.0.1:8000": service.url}).through(DOCUMENT)
