"""The how-to guide of documents in an object store: both directions, with a real store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.conftest import manage_py, readers
from tests.docs.walk import ROOT, Walk
from tests.e2e import object_store
from tests.e2e.backend import Backend, document
from tests.support.server import LiveServer, live_server

PAGE = ROOT / "docs" / "how-to" / "object-storage.md"


@pytest.fixture
def server() -> Iterator[LiveServer]:
    """A server with documents in the database, and then with the page's other store."""
    text = PAGE.read_text()
    (url,) = re.findall(r"^STATE_STORAGE_URL='(s3://KEY.+)'$", text, re.MULTILINE)
    with object_store.running() as port, live_server(WEB_WORKERS="1") as server:
        backend = Backend(server, server.token("state:read", "state:write"))
        for serial in (1, 2, 3):
            assert backend.push(document(serial)).status == 200
        restarted(
            server,
            STATE_STORAGE_URL=url.replace("@bucket?", f"@{object_store.BUCKET}?").replace(
                "https://minio.example:9000", f"http://127.0.0.1:{port}"
            ),
        )
        yield server


def restarted(server: LiveServer, **environment: str) -> None:
    assert server.stop() == 0
    server.environment |= environment
    server.start()


def test_round_trip_preserves_the_data(server: LiveServer, place: Path) -> None:
    backend = Backend(server, server.token("state:read", "state:write"))
    pip = ".venv/bin/pip install --require-hashes -r requirements-s3.txt"
    # The tests' environment has the packages: an installation takes minutes.
    by_hand = {pip: lambda: ""}
    assert (ROOT / "requirements-s3.txt").is_file()
    walk = Walk(place, readers(place, server.environment), manage_py(), by_hand, any_figures=True)
    assert walk.through(PAGE) == 4

    for serial in (1, 2):
        assert backend.push(document(serial)).status == 200
    item = r"^\d\. .*`\.venv/bin/python manage\.py (move_documents .+?)`"
    back = re.findall(item, PAGE.read_text(), re.MULTILINE)
    assert back == ["move_documents --to database"]
    restarted(server, STATE_STORAGE_WRITES="false")
    moved = server.manage(*back[0].split())
    assert re.fullmatch(r"\d+ documents moved\n", moved)
    assert not moved.startswith("0 ")
    del server.environment["STATE_STORAGE_URL"], server.environment["STATE_STORAGE_WRITES"]
    restarted(server)
    assert backend.get().body == document(2)
    assert server.manage("verify_states").startswith("5 documents checked, 0 problems")
