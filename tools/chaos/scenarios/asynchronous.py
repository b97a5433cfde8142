"""A scenario of a failover to a lagging standby: lost writes and rejected clients."""

from __future__ import annotations

import uuid
from pathlib import Path

from tests.e2e.backend import Backend, document
from tests.support.server import Answer
from tests.support.waiting import wait_until
from tools.chaos import network
from tools.chaos.databases import Postgres
from tools.chaos.report import Outcome
from tools.chaos.service import Front, serving


def lost_lock(directory: Path) -> list[Outcome]:
    """Isolate the standby, acquire a lock, and then promote the standby."""
    primary, standby = Postgres(directory, "a"), Postgres(directory, "b")
    try:
        primary.create()
        primary.start()
        standby.follow(primary)
        standby.start()
        url = f"postgres://postgres@{primary.address},{standby.address}/postgres"
        with serving(directory, DATABASE_URL=url) as front:
            return [_lose(front, primary, standby)]
    finally:
        for host in ("a", "b"):
            network.mend(host)
        standby.stop()
        primary.stop()


def _lose(front: Front, primary: Postgres, standby: Postgres) -> Outcome:
    outcome = Outcome("asynchronous replication: a lock that the standby never received")
    backend, lock, other = Backend(front, front.token(*_SCOPES)), str(uuid.uuid4()), uuid.uuid4()
    assert backend.push(document(1)).status == 200
    position = "SELECT pg_current_wal_lsn() = replay_lsn FROM pg_stat_replication"
    wait_until(lambda: primary.run_sql(position) == [(True,)])
    network.cut("b")
    assert backend.lock(lock).status == 200
    assert backend.push(document(2), lock).status == 200
    network.cut("a")
    network.mend("b")
    standby.promote()
    wait_until(lambda: front.request("GET", "/readyz").status == 200, 60)

    def note(label: str, answer: Answer, expected: tuple[int, str]) -> None:
        seen = (answer.status, "" if answer.status == 200 else answer.reason)
        outcome.statuses[answer.status] += 1
        outcome.figures[label] = f"{seen[0]} {seen[1]}".strip()
        if seen != expected:
            outcome.broken.append(f"{label}: {seen} instead of {expected}")

    # Processes with a stale connection respond with 503 once, and the client repeats the request.
    wait_until(lambda: backend.push(document(3), lock).status != 503, 60)
    note("the owner pushes", backend.push(document(3), lock), (409, "LOCK_NOT_HELD"))
    wait_until(lambda: backend.lock(str(other)).status != 503, 60)
    note("another client locks", backend.lock(str(other)), (200, ""))
    note("the owner then pushes", backend.push(document(3), lock), (423, "STATE_LOCKED"))
    if backend.get().body != document(1):
        outcome.broken.append("the state is not the old version")
    outcome.figures["lost"] = "1 of 2 pushes, as expected"
    return outcome


_SCOPES = ("state:read", "state:write")
