"""The how-tos on moving states in both directions, with existing states in the other backends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.conftest import manage_py, needs_terraform, readers
from tests.docs.walk import ROOT, Walk
from tests.e2e import object_store
from tests.e2e.backend import Backend
from tests.e2e.terraform import Terraform
from tests.states.moving.test_s3 import variables
from tests.support import postgres
from tests.support.server import LiveServer

pytestmark = [pytest.mark.terraform, needs_terraform]

HOW_TO = ROOT / "docs/how-to"
S3 = """
terraform {
  backend "s3" {
    bucket                      = "states"
    key                         = "%s"
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
HTTP = 'terraform {\n  backend "http" {}\n}\n'
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
    """The address of a PostgreSQL for Terraform alone."""
    with postgres.running() as server:
        yield server.url


def old_state(tf: Terraform, backend: str, *workspaces: str) -> None:
    """Create a directory with a long history: a backend, and a state of several serials."""
    if backend:
        (tf.directory / "backend.tf").write_text(backend)
    tf.write(RESOURCES % 1)
    tf.run("init")
    for workspace in workspaces or ("default",):
        if workspace != "default":
            tf.run("workspace", "new", workspace)
        for size in (1, 2):
            tf.write(RESOURCES % size)
            tf.apply()


def operators(place: Path, service: LiveServer) -> dict[str, str]:
    """Return the environment of an operator on the service's host."""
    keys = (service.directory / "service.env").read_text().strip().partition("=")[2]
    return readers(place, {**service.environment, "STATE_ENCRYPTION_KEYS": keys})


def names_of_states(service: LiveServer, token: str) -> dict[str, int]:
    answer = service.request("GET", "/api/v1/states?page_size=100", token=token)
    return {
        f"{state['component_slug']}/{state['environment_slug']}": state["serial"]
        for state in answer.json()["states"]
    }


def test_import_commands_work(
    place: Path, service: LiveServer, s3_port: int, database_url: str
) -> None:
    mine, gitlabs = service.tokens("state:read,state:write", "state:read,state:write")
    gitlab = Backend(service, gitlabs)
    old_state(Terraform(place / "network", "", ""), S3 % ("prod/network.tfstate", s3_port))
    old_state(Terraform(place / "shop", "", ""), S3 % ("shop.tfstate", s3_port), "staging", "prod")
    old_state(Terraform(place / "live/prod/cache", "", ""), "")
    old_state(Terraform(place / "queue", "", ""), PG % database_url)
    dns = Terraform(place / "dns", "", gitlabs, TF_HTTP_ADDRESS=gitlab.address)
    old_state(dns, HTTP)
    words = {
        "https://gitlab.example/api/v4/projects/42/terraform/state/dns": gitlab.address,
        "pg://terraform@db.example/terraform": "pg://" + database_url.partition("://")[2],
        "s3://terraform-states": f"s3://{object_store.BUCKET}",
        "http://127.0.0.1:8000": service.url,
        "glpat-…": gitlabs,
        "isp_…": mine,
        **manage_py(),
    }
    environment = {**operators(place, service), **variables(s3_port)}

    assert Walk(place, environment, words).through(HOW_TO / "import-states.md")
    moved = names_of_states(service, mine)
    places = ("network/prod", "shop/staging", "shop/prod", "cache/prod", "queue/prod", "dns/prod")
    assert [moved[name] is not None for name in places] == [True] * 6


def test_export_commands_work(place: Path, service: LiveServer, s3_port: int) -> None:
    (token,) = service.tokens("state:read,state:write")
    network = Terraform(place / "network", f"{service.url}/api/v1/state/at/network-out/prod", token)
    old_state(network, "")
    # The blocks of the page are for AWS; the environment has the additions for moto's server.
    words = {
        "s3://terraform-states": f"s3://{object_store.BUCKET}",
        '"terraform-states"': f'"{object_store.BUCKET}"',
        "/network/prod": "/network-out/prod",
        "ls exported/network": "ls exported/network-out",
        "    use_lockfile = true\n": S3[S3.index("    access_key") : S3.index("  }\n}")] % s3_port,
        **manage_py(),
    }
    environment = {**operators(place, service), **variables(s3_port)}

    assert Walk(place, environment, words).through(HOW_TO / "export-states.md")
