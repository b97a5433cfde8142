"""Sudden death of the service and of its database: acknowledged writes survive.

``KILLS`` is the number of kills of the service: 50 in the full run, few by default.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.e2e.database import contradictions, snapshot
from tests.e2e.traffic import Traffic
from tests.support import postgres
from tests.support.server import LiveServer, live_server
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.both, pytest.mark.long]

KILLS = int(os.environ.get("KILLS", "3"))


@pytest.fixture
def mortal() -> Iterator[LiveServer]:
    """A server for this test alone."""
    with live_server() as server:
        yield server


def test_kills_at_random_moments_lose_no_data(mortal: LiveServer) -> None:
    traffic = Traffic(mortal, mortal.token("state:read", "state:write", "state:admin"))
    for _ in range(KILLS):
        before = traffic.acknowledged()
        traffic.start()
        wait_until(lambda before=before: traffic.acknowledged() > before)
        time.sleep(random.uniform(0.0, 1.0))
        mortal.kill()
        traffic.stop()
        mortal.start()

        found = snapshot(mortal)
        assert contradictions(mortal, found) == []
        for ledger in traffic.ledgers:
            assert ledger.broken_promises(found) == []
        traffic.release_locks()
    assert traffic.unexpected == []
    assert contradictions(mortal) == []
    report(f"{KILLS} kills", traffic)


def report(what: str, traffic: Traffic) -> None:
    """Print the figures of a full run: pytest -s."""
    acknowledged = traffic.acknowledged()
    sent = sum(len(ledger.sent) for ledger in traffic.ledgers)
    line = f"\n{what}: {sent} pushes sent, {acknowledged} acknowledged, none lost; "
    os.write(1, f"{line}answers {dict(sorted(traffic.seen.items()))}\n".encode())


@pytest.mark.skipif(
    not os.environ.get("DATABASE_URL", "").startswith("postgres"),
    reason="SQLite is part of the process: it has no server that could be restarted",
)
def test_database_is_stopped_crashes_and_hangs_under_traffic() -> None:
    with (
        postgres.running() as database,
        live_server(DATABASE_URL=database.url, DATABASE_POOL_TIMEOUT="1") as server,
    ):
        token = server.token("state:read", "state:write", "state:admin")
        traffic = Traffic(server, token)
        traffic.start(persistent=True)
        for end in (database.stop, database.crash):
            time.sleep(1)
            end()
            time.sleep(0.5)
            for path in ("/readyz", "/v1/whoami"):
                down = server.request("GET", path, token=token)
                assert (down.status, down.reason) == (503, "DATABASE_UNAVAILABLE")
                assert int(down.headers["Retry-After"]) > 0
            assert server.request("GET", "/healthz").status == 200
            database.start()
            traffic.wait_until_each_has(1)  # again, without assistance
        with database.frozen():
            for path in ("/readyz", "/v1/whoami", "/readyz"):
                down = server.request("GET", path, token=token)
                assert (down.status, down.reason) == (503, "DATABASE_UNAVAILABLE")
            assert server.request("GET", "/healthz").status == 200
        traffic.wait_until_each_has(1)
        traffic.stop()

        assert traffic.unexpected == []
        assert traffic.seen[503] > 0
        found = snapshot(server)
        assert contradictions(server, found) == []
        for ledger in traffic.ledgers:
            assert ledger.broken_promises(found) == []
        report("database stopped, crashed and frozen", traffic)


@pytest.mark.skipif(
    not os.environ.get("DATABASE_URL", "").startswith("postgres"),
    reason="SQLite has no limit of connections",
)
def test_service_without_another_connection_is_ready_while_it_works() -> None:
    with live_server(WEB_WORKERS="1") as server:
        token = server.token("state:read")
        assert server.request("GET", "/v1/whoami", token=token).status == 200
        assert server.request("GET", "/readyz").status == 200

        # The server rejects new connections, as with too many, and the pool keeps its connections.
        server.allow_connections(allowed=False)
        ready = [server.request("GET", "/readyz").status for _ in range(3)]
        working = server.request("GET", "/v1/whoami", token=token).status
        server.allow_connections(allowed=True)

        assert (ready, working) == ([200] * 3, 200)


@pytest.mark.skipif(
    not os.environ.get("DATABASE_URL", "").startswith("postgres"),
    reason="SQLite has no sessions",
)
def test_service_with_a_read_only_database_is_not_ready() -> None:
    with (
        postgres.running() as database,
        live_server(DATABASE_URL=database.url, WEB_WORKERS="1") as server,
        psycopg.connect(database.url, autocommit=True) as administrator,
    ):
        token = server.token("state:read")
        assert server.request("GET", "/v1/whoami", token=token).status == 200

        # New connections are rejected, and the connections of the pool are read-only.
        administrator.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        administrator.execute("SELECT pg_reload_conf()")

        wait_until(lambda: server.request("GET", "/readyz").status == 503)
        assert server.request("GET", "/readyz").reason == "DATABASE_UNAVAILABLE"
