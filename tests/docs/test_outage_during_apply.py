"""The recovery of an apply that outlasts an outage, with the guide's own commands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs.walk import ROOT
from tests.e2e.terraform import BINARY, Terraform
from tests.support.server import live_server
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.skipif(BINARY is None, reason="needs terraform")]

GUIDE = ROOT / "docs/how-to/release-a-stuck-lock.md"
#: Creates an object only after the test permits it, within a minute.
CONFIGURATION = """
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "touch started; for i in $(seq 600); do [ -e go ] && exit 0; sleep 0.1; done; exit 1"
  }
}
"""


def commands(lock_id: str) -> list[list[str]]:
    """Return the guide's commands, with this lock instead of its example."""
    text = GUIDE.read_text()
    (block,) = re.findall(
        r"^```\n(terraform force-unlock -force .*?)^```$", text, re.MULTILINE | re.DOTALL
    )
    replaced = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", lock_id, block)
    return [line.split()[1:] for line in replaced.splitlines()]


def test_an_apply_that_outlasts_an_outage(tmp_path: Path) -> None:
    with live_server() as server:
        token = server.token("state:read", "state:write", "state:admin")
        address = f"{server.url}/api/v1/state/at/network/production"
        directory = tmp_path / "network"
        terraform = Terraform(directory, address, token)
        terraform.write(CONFIGURATION)
        terraform.run("init")
        apply = terraform.start("apply", "-auto-approve")
        wait_until((directory / "started").exists, 60)

        server.kill()
        (directory / "go").touch()
        printed, _ = apply.communicate(timeout=120)
        assert apply.returncode == 1, printed
        assert "Failed to save state" in printed
        assert (directory / "errored.tfstate").exists()

        server.start()
        (state,) = server.request("GET", "/api/v1/states", token=token).json()["states"]
        lock_id = state["lock"]["lock_id"]
        assert "Error releasing the state lock" in printed
        refused = terraform.run("state", "push", "errored.tfstate", code=1)
        assert f"already locked: ID={lock_id}" in refused.out
        for arguments in commands(lock_id):
            done = terraform.run(*arguments)

        assert "No changes" in done.out
        (state,) = server.request("GET", "/api/v1/states", token=token).json()["states"]
        assert state.get("lock") is None
        stored = server.request("GET", "/api/v1/state/at/network/production", token=token).json()
        (resource,) = stored["resources"]
        assert resource["name"] == "slow"
        saved = json.loads((directory / "errored.tfstate").read_text())
        assert saved["resources"] == [resource]
