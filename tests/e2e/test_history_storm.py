"""Concurrent restore, push, lock, delete, prune, key rotation and storage moves.

A few seconds by default; ``STORM_SECONDS=300`` makes it minutes.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
from collections.abc import Iterator

import pytest

from tests.e2e import object_store
from tests.e2e.backend import Backend
from tests.e2e.object_store import Line
from tests.e2e.storm import Repeated, Storm
from tests.support.server import live_server

pytestmark = pytest.mark.long

SECONDS = float(os.environ.get("STORM_SECONDS", "2"))
KEPT = 5


@contextlib.contextmanager
def stored(where: str) -> Iterator[dict[str, str]]:
    """Yield the environment of a server with this storage of documents."""
    if where == "database":
        yield {}
        return
    with object_store.running() as port:
        line = Line(port)
        yield {"STATE_STORAGE_URL": line.url}
        line.close()


@pytest.mark.parametrize(
    "where", [pytest.param("database", marks=pytest.mark.both), "object store"]
)
def test_no_version_within_retention_is_lost_or_altered(where: str) -> None:
    one, two = (base64.b64encode(secrets.token_bytes(32)).decode() for _ in range(2))
    keys, reversed_keys = f"{one},{two}", f"{two},{one}"
    retention = {"STATE_VERSIONS_KEPT": str(KEPT), "STATE_VERSIONS_DAYS": "0"}
    settings = {"STATE_ENCRYPTION_KEYS": keys, "WEB_THREADS": "8", **retention}
    with stored(where) as storage, live_server(**settings, **storage) as server:
        token = server.token("state:read", "state:write", "state:admin", "state:secrets")
        backends = [Backend(server, token) for _ in range(2)]
        storm = Storm(backends, seed=secrets.randbits(32))
        storm.begin()
        workers = [
            Repeated(server, "prune_states"),
            Repeated(server, "rotate_state_keys"),
            Repeated(server, "rotate_state_keys", STATE_ENCRYPTION_KEYS=reversed_keys),
        ]
        if storage:
            back = {"STATE_STORAGE_WRITES": "false"}
            workers.append(Repeated(server, "move_documents --to storage"))
            workers.append(Repeated(server, "move_documents --to database", **back))
        for worker in workers:
            worker.wait_until_ready()
        for worker in workers:
            worker.begin()
        storm.run(SECONDS)
        runs = [worker.runs() for worker in workers]

        assert storm.wrong == [], storm.seed
        assert min(runs) > 0
        server.run_commands(("prune_states",))
        assert storm.broken_promises(KEPT) == [], storm.seed
        (verified,) = server.run_commands(("verify_states", "--json"))
        assert json.loads(verified)["problems"] == []
        assert storm.lacking() == set(), storm.answers
        if os.environ.get("STORM_SECONDS"):
            print(where, runs, sorted(storm.answers.items()))  # noqa: T201 - for who asked for it
