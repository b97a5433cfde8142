"""docs/how-to/move-from-another-backend.md, with states that are in the other backends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres
from tests.docs.conftest import needs_terraform, readers
from tests.docs.walk import ROOT, Walk
from tests.e2e import object_store
from tests.e2e.backend import Backend
from tests.e2e.terraform import Terraform
from tests.server import LiveServer

pytestmark = [pytest.mark.terraform, needs_terraform]

S3 = """
terraform {
  backend "s3" {
    bucket                      = "states"
    key                         = "%s.tfstate"
    region                      = "us-east-1"
    access_key                  = "key"
    secret_key                  = "secret"
    endpoints                   = { s3 = "http://127.0.0.1:%d" }
    use_path_style              = true
    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
    skip_region_validation      = true
    skip_s3_checksum            = true
  }
}
"""
PG = 'terraform {\n  backend "pg" {\n    conn_str = "%s?sslmode=disable"\n  }\n}\n'
RESOURCES = """
resource "terraform_data" "a" { input = %d }
resource "terraform_data" "b" { input = terraform_data.a.output }
"""


@pytest.fixture
def s3_port() -> Iterator[int]:
    with object_store.running() as port:
        yield port


@pytest.fixture
def database_url() -> Iterator[str]:
    """The address of a PostgreSQL that is Terraform's alone."""
    with postgres.running() as server:
        yield server.url


def old_state(directory: Path, backend: str, *workspaces: str) -> None:
    """Leave a directory behind as years of work do: a backend, and a state of several serials."""
    tf = Terraform(directory, "", "")
    (directory / "backend.tf").write_text(backend)
    tf.run("init")
    for workspace in workspaces or ("default",):
        if workspace != "default":
            tf.run("workspace", "new", workspace)
        for size in (1, 2, 3):
            tf.write(RESOURCES % size)
            tf.apply()


def test_move(place: Path, service: LiveServer, s3_port: int, database_url: str) -> None:
    mine, gitlabs = service.tokens("state:read,state:write", "state:read,state:write")
    gitlab = Backend(service, gitlabs)
    old_state(place / "network", S3 % ("network", s3_port))
    old_state(place / "shop", S3 % ("shop", s3_port), "staging", "prod")
    old_state(place / "cache", PG % database_url)
    dns = Terraform(place / "dns", "", gitlabs, TF_HTTP_ADDRESS=gitlab.address)
    (place / "dns" / "backend.tf").write_text('terraform {\n  backend "http" {}\n}\n')
    dns.write(RESOURCES % 3)
    dns.run("init")
    dns.apply()
    words = {
        "https://gitlab.example/api/v4/projects/42/terraform/state/dns": gitlab.address,
        "http://127.0.0.1:8000": service.url,
        "glpat-…": gitlabs,
        "isp_…": mine,
    }
    walk = Walk(place, readers(place, {}), words)

    assert walk.through(ROOT / "docs/how-to/move-from-another-backend.md")
    answer = service.request("GET", "/api/v1/states?page_size=100", token=mine)
    moved = [state for state in answer.json()["states"] if state["serial"]]
    components = {
        component["id"]: component["name"]
        for component in service.request("GET", "/api/v1/components", token=mine).json()[
            "components"
        ]
    }
    serials: dict[str, list[int]] = {}
    for state in moved:
        serials.setdefault(components[state["component_id"]], []).append(state["serial"])
    named = {name: serials[name] for name in ("network", "shop", "dns", "cache")}
    assert named == {"network": [3], "shop": [4, 4], "dns": [1], "cache": [1]}
