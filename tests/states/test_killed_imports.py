"""An import that is killed anywhere, and two at once: nothing is twice, and nothing is missing."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from states.moving.manifest import MANIFEST, ExportedState, ExportedVersion, Header
from tests.e2e.database import Snapshot, contradictions, snapshot
from tests.states.conftest import document
from tests.states.forked import Fork, forking
from tests.support.server import LiveServer

pytestmark = [pytest.mark.both, pytest.mark.long]

#: 500 states of 20 versions in the full run.
STATES = int(os.environ.get("IMPORTED_STATES", "30"))
VERSIONS = int(os.environ.get("IMPORTED_VERSIONS", "4"))
KILLS = 10
MOMENT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def exported(root: Path) -> dict[uuid.UUID, list[str]]:
    """Write an export of many states, and return the digests of each component's state in order."""
    root.mkdir()
    lines, digests = [msgspec.json.encode(Header(1, MOMENT))], {}
    for number in range(STATES):
        component, path = uuid.uuid4(), f"c{number}/prod.tfstate"
        versions = []
        for serial in range(1, VERSIONS + 1):
            content = document(serial, str(component), outputs={str(serial): {"value": 1}})
            file = root / (path if serial == VERSIONS else f"c{number}/{serial}.tfstate")
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content)
            md5 = hashlib.md5(content).hexdigest()
            versions.append(
                ExportedVersion(
                    uuid.uuid4(), serial, serial, str(component), md5, len(content), MOMENT, "ada",
                    str(file.relative_to(root)),
                )
            )  # fmt: skip
        ids = (uuid.uuid4(), None, component, uuid.UUID(int=7))
        names = (None, f"c{number}", "prod", None, f"c{number}", "prod")
        lines.append(msgspec.json.encode(ExportedState(*ids, *names, path, versions)))
        digests[component] = [version.md5 for version in versions]
    (root / MANIFEST).write_bytes(b"\n".join(lines) + b"\n")
    return digests


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    """A service with a database but no running server."""
    (tmp_path / "var").mkdir()
    server = LiveServer(tmp_path / "var")
    try:
        server.prepare()
        yield server
    finally:
        server.close()


@pytest.fixture
def importer(server: LiveServer) -> Iterator[Fork]:
    with forking(server.environment) as run:
        yield run


def run(importer: Fork, source: Path, *kill_at: int | None) -> list[int]:
    """Start runs at the same time and return their exit codes."""
    return importer("import_states", "--from", str(source), "--history", "all", kill_at=kill_at)


def stored(found: Snapshot) -> dict[uuid.UUID, list[str]]:
    """Return the digests of each component's state, in the order of their numbers."""
    made: dict[uuid.UUID, list[str]] = {}
    for state in found.states:
        versions: list[Any] = found.versions[state["id"]]
        assert [version["number"] for version in versions] == list(range(1, VERSIONS + 1))
        assert state["lock_id"] is None
        made[state["component_id"]] = [version["md5"] for version in versions]
    return made


def test_killed_import_is_continued(server: LiveServer, importer: Fork, tmp_path: Path) -> None:
    digests = exported(tmp_path / "export")
    # A version takes a single write statement on PostgreSQL, and several on SQLite.
    most = STATES * VERSIONS // KILLS

    ended = [
        run(importer, tmp_path / "export", random.randrange(most // 2, most)) for _ in range(KILLS)
    ]

    assert ended == [[-9]] * KILLS
    halfway = sum(map(len, snapshot(server).versions.values()))
    assert 0 < halfway < STATES * VERSIONS
    assert run(importer, tmp_path / "export", None) == [0]
    found = snapshot(server)
    assert contradictions(server, found) == []
    assert stored(found) == digests
    imports = [n for (action, _), n in found.events.items() if action == "state.import"]
    assert imports == [VERSIONS] * STATES


def test_two_concurrent_runs_share_the_work(
    server: LiveServer, importer: Fork, tmp_path: Path
) -> None:
    digests = exported(tmp_path / "export")

    assert run(importer, tmp_path / "export", None, None) == [0, 0]
    found = snapshot(server)
    assert contradictions(server, found) == []
    assert stored(found) == digests
    imports = [n for (action, _), n in found.events.items() if action == "state.import"]
    assert imports == [VERSIONS] * STATES
