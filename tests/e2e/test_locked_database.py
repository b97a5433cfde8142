"""Another process holds SQLite's write lock, like a backup tool or a forgotten shell."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest

from tests.e2e.backend import Backend, document
from tests.support.server import LiveServer

pytestmark = pytest.mark.both


def test_reads_go_on_and_writers_wait(live: LiveServer, backend: Backend) -> None:
    if "DATABASE_URL" in live.environment:
        pytest.skip("PostgreSQL has no such lock")
    statuses: list[int] = []
    push = threading.Thread(target=lambda: statuses.append(backend.push(document()).status))
    file = live.directory / "db.sqlite3"
    with closing(sqlite3.connect(file, timeout=20, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        push.start()
        for path in ("/api/v1/states", "/v1/whoami", "/readyz", "/healthz"):
            assert live.request("GET", path, token=backend.token).status == 200
        assert statuses == []
        holder.execute("ROLLBACK")
    push.join()

    assert statuses == [200]
