"""The reference of the remote backend lists each route, and the commands of its how-to work."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from states.remote.urls import ROUTES
from tests.docs.conftest import needs_terraform, readers
from tests.docs.walk import ROOT, Walk
from tests.e2e.remote import cli_settings
from tests.support.server import LiveServer

REFERENCE = (ROOT / "docs/reference/remote-backend.md").read_text()
PAGE = ROOT / "docs/how-to/use-workspaces.md"
KILLED = 'kill -9 "$APPLY"'


def test_routes_and_methods_match() -> None:
    documented = re.findall(r"^\| `([^`]+)` \| ([A-Z, ]+) \|", REFERENCE, re.MULTILINE)
    routes = [
        (
            re.sub(r"\(\?P<(\w+)>[^)]*\)", r"{\1}", path),
            ", ".join(method.upper() for method in actions if method != "head"),  # DRF adds it
        )
        for path, _name, _view, actions in ROUTES
    ]
    assert documented == routes


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[LiveServer]:
    """A service with the settings of the page."""
    block = re.search(r"```sh\n(REMOTE_BACKEND=.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    settings = dict(line.split("=") for line in block[1].split())
    (tmp_path / "server").mkdir()
    server = LiveServer(tmp_path / "server", WEB_WORKERS="1", **settings)
    with contextlib.closing(server):
        server.prepare()
        server.start()
        yield server


@needs_terraform
def test_commands_of_the_how_to(remote: LiveServer, place: Path) -> None:
    token = remote.token("state:read", "state:write", "state:admin")
    environment = {**readers(place, dict(os.environ)), "TOKEN": token}
    settings = Path(environment["TF_CLI_CONFIG_FILE"])
    settings.write_text(cli_settings(remote))  # replaces HTTPS and the service discovery

    def leave_a_lock() -> str:
        """Lock the workspace like an apply that is killed afterwards."""
        path = f"/api/v2/organizations/acme/workspaces/{quote('app-dev')}"
        found = remote.request("GET", path, token=token).json()["data"]["id"]
        locked = remote.request("POST", f"/api/v2/workspaces/{found}/actions/lock", token=token)
        assert locked.status == 200
        return ""

    walk = Walk(
        place,
        environment,
        words={"https://infra.example": remote.url},
        by_hand={KILLED: leave_a_lock},
    )
    assert walk.through(PAGE) == 28
