"""States of Terraform's own backends: imported, and continued here."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import psycopg
import pytest

from tests.e2e import object_store
from tests.e2e.named import Named, new_name
from tests.e2e.terraform import BINARY, Terraform, ended
from tests.states.moving.test_s3 import variables
from tests.support.installation import ROOT
from tests.support.server import LiveServer
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.terraform,
    pytest.mark.skipif(BINARY is None, reason="neither terraform nor tofu is on the PATH"),
]

S3 = """terraform {
  backend "s3" {
    bucket                      = "states"
    key                         = "%s/terraform.tfstate"
    region                      = "us-east-1"
    use_lockfile                = true
    use_path_style              = true
    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
    skip_region_validation      = true
    skip_s3_checksum            = true
  }
}
"""
PG = 'terraform {\n  backend "pg" {}\n}\n'
CONFIGURATION = """
variable "number" {}
resource "terraform_data" "a" {
  input = var.number
  provisioner "local-exec" { command = "touch begun; until test -e go; do sleep 0.1; done" }
}
resource "terraform_data" "b" { input = terraform_data.a.output }
output "b" { value = terraform_data.b.output }
"""


@dataclass
class Old:
    """Another backend: its block, its environment, and its import command."""

    block: str
    environment: dict[str, str]
    source: str
    map: str
    #: Of its state in this service.
    names: tuple[str, str]
    #: The versions of three applies that it still has.
    versions: int


@pytest.fixture
def names() -> tuple[str, str]:
    return new_name("component"), new_name("environment")


@pytest.fixture
def s3(names: tuple[str, str]) -> Iterator[Old]:
    component, environment = names
    with object_store.running() as port:
        known = variables(port)
        boto3.session.Session("key", "secret", region_name="us-east-1").client(
            "s3", endpoint_url=known["AWS_ENDPOINT_URL"]
        ).put_bucket_versioning(
            Bucket=object_store.BUCKET, VersioningConfiguration={"Status": "Enabled"}
        )
        rule = '[[map]]\npattern = "{environment}/{component}/terraform.tfstate"\n'
        yield Old(S3 % f"live/{environment}/{component}", known, "s3://states/live", rule, names, 3)


@pytest.fixture
def pg(names: tuple[str, str]) -> Iterator[Old]:
    url = os.environ.get("DATABASE_URL", "")
    if not url.startswith("postgres"):
        pytest.skip("PostgreSQL is what it reads")
    database = f"terraform_{secrets.token_hex(6)}"
    host = url.rpartition("/")[0]
    rule = f'[[map]]\npattern = "default"\ncomponent = "{names[0]}"\nenvironment = "{names[1]}"\n'
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}")
        known = {"PG_CONN_STR": f"{host}/{database}?sslmode=disable"}
        yield Old(PG, known, f"pg{host.removeprefix('postgres')}/{database}", rule, names, 1)
        connection.execute(f"DROP DATABASE {database} WITH (FORCE)")


def moved(live: LiveServer, old: Old, directory: Path, *options: str) -> Any:
    """Run the command on the service's host; return its result for the state."""
    (directory / "map.toml").write_text(old.map)
    given = ["--from", old.source, "--map", str(directory / "map.toml"), "--json", *options]
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "import_states", *given],
        env={**live.environment, **old.environment},
        check=False,
        stdout=subprocess.PIPE,
    )
    (state,) = json.loads(done.stdout)["states"]
    return state


@pytest.mark.parametrize("backend", ["s3", "pg"])
def test_moved_state_is_read(
    backend: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    live: LiveServer,
    token: str,
) -> None:
    """The import detects the backend's lock; afterwards the plan is empty, and work continues."""
    old: Old = request.getfixturevalue(backend)
    tf = Terraform(tmp_path / "tf", "", token, **old.environment)
    (tf.directory / "backend.tf").write_text(old.block)
    tf.write(CONFIGURATION)
    tf.run("init")

    (tf.directory / "go").touch()
    tf.apply("-var=number=1")
    tf.apply("-var=number=2")
    (tf.directory / "begun").unlink()
    (tf.directory / "go").unlink()
    applying = tf.start("apply", "-auto-approve", "-var=number=3", "-replace=terraform_data.a")
    wait_until((tf.directory / "begun").exists)
    while_locked = moved(live, old, tmp_path, "--dry-run")
    (tf.directory / "go").touch()
    assert ended(applying).code == 0
    before = tf.pulled()
    done = moved(live, old, tmp_path, "--history", "all")
    tf.use_backend(f"{live.url}{Named(live, token, *old.names).path}")
    tf.run("init", "-reconfigure")

    assert "The state is locked in the source by" in while_locked["reason"]
    assert (done["result"], done["imported"]) == ("imported", old.versions)
    assert tf.pulled() == before
    tf.run("plan", "-detailed-exitcode", "-var=number=3")
    tf.apply("-var=number=4")
    assert tf.pull()["outputs"]["b"]["value"] == "4"
