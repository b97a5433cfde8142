"""The guide to the command-line client, walked with terraform."""

from pathlib import Path

import pytest

from tests.client.running import Client
from tests.docs.conftest import needs_terraform, readers
from tests.docs.walk import ROOT, Walk
from tests.support.server import LiveServer


@pytest.mark.terraform
@needs_terraform
def test_the_client(place: Path, service: LiveServer) -> None:
    token = service.token("state:read", "state:write", "state:admin")
    environment = readers(place, service.environment)
    address = "http://127.0.0.1:8000"
    person = Client(Path(environment["HOME"]))

    def sign_in() -> str:
        shown = person.on_terminal("login", service.url, columns=200, typed=f"{token}\n")
        return shown.replace(service.url, address)

    walk = Walk(
        place,
        environment,
        {address: service.url, "isp_…": token},
        by_hand={f"infra login {address}": sign_in},
    )

    assert walk.through(ROOT / "docs/how-to/use-the-client.md") == 21
