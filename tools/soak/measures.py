"""Measure the worker processes of a service and its database from outside."""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from infra_service.operations.allocated import AllocatedDict
from tests.e2e.backend import Backend
from tests.support.server import LiveServer
from tools.bench.push import state

_PUSHES = 50
# The stored buckets are not cumulative: each request is counted in a single bucket.
_OF_REQUESTS = "django_http_requests_latency_seconds_by_view_method_bucket"


@dataclass(frozen=True)
class Worker:
    """A worker process at a point in time."""

    requests: int
    kilobytes: int
    descriptors: int


@dataclass(frozen=True)
class Sample:
    """The measurements of the workers and the database at a point in time."""

    moment: float
    workers: dict[int, Worker]
    figures: dict[str, int]


def sample(server: LiveServer) -> Sample:
    """Measure the workers and the database."""
    workers = {pid: _worker(server, pid) for pid in server.workers()}
    return Sample(time.monotonic(), workers, _database(server))


def _worker(server: LiveServer, pid: int) -> Worker:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    own = sum(int(line.split()[1]) for line in rollup if line.startswith("Private_"))
    counts = Path(server.environment["VAR_DIR"], "metrics", f"histogram_{pid}.db")
    read: Any = AllocatedDict.read_all_values_from_file
    requests = sum(v for key, v, *_ in read(str(counts)) if _OF_REQUESTS in key)
    return Worker(int(requests), own, len([*Path(f"/proc/{pid}/fd").iterdir()]))


_QUERY = """SELECT
    (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND pid <> pg_backend_pid()) AS connections,
    (SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables)::bigint AS dead_rows,
    (SELECT coalesce(sum(n_live_tup), 0) FROM pg_stat_user_tables)::bigint AS live_rows,
    (SELECT coalesce(sum(autovacuum_count), 0) FROM pg_stat_user_tables)::bigint AS vacuums,
    pg_database_size(current_database()) AS database_bytes,
    pg_total_relation_size('states_stateversion') AS version_bytes,
    (SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('apikeys_auditevent'))::bigint
        AS event_bytes,
    (SELECT count(*) FROM states_stateversion) AS versions,
    (pg_current_wal_insert_lsn() - '0/0')::bigint AS wal_bytes"""


def _database(server: LiveServer) -> dict[str, int]:
    with psycopg.connect(server.environment["DATABASE_URL"], autocommit=True) as connection:
        cursor = connection.execute(_QUERY)
        row = cursor.fetchone()
        assert row is not None
        names = [column.name for column in cursor.description or ()]
        return {name: int(value) for name, value in zip(names, row, strict=True)}


def costs_of_a_push(server: LiveServer, size: int) -> dict[str, int]:
    """Return the average growth of the database in bytes per push of a state of this size."""
    backend = Backend(server, server.token("state:write", "state:read"))
    # The first pushes allocate pages and fill caches.
    _push(backend, lambda serial: state(size, serial), range(1, 11))
    with psycopg.connect(server.environment["DATABASE_URL"], autocommit=True) as connection:
        before = _database(server)
        _push(backend, lambda serial: state(size, serial), range(11, 11 + _PUSHES))
        after = _database(server)
        row = connection.execute(
            "SELECT avg(length(document)) FROM states_stateversion WHERE state_id ="
            " (SELECT id FROM states_state WHERE component_id = %s)",
            [backend.component_id],
        ).fetchone()
    assert row is not None
    names = ("wal_bytes", "version_bytes", "event_bytes")
    found = {name: (after[name] - before[name]) // _PUSHES for name in names}
    return {**found, "stored_bytes": int(row[0])}


def _push(backend: Backend, document: Callable[[int], bytes], serials: range) -> None:
    lock = str(uuid.uuid4())
    assert backend.lock(lock).status == 200
    for serial in serials:
        assert backend.push(document(serial), lock).status == 200
    assert backend.unlock(lock).status == 200


def memory_after(samples: list[Sample], pid: int, requests: int) -> int | None:
    """Return the median memory of a worker in the first five samples after this many requests."""
    own = [s.workers[pid] for s in samples if pid in s.workers]
    later = [one.kilobytes for one in own if one.requests >= requests][:5]
    return int(statistics.median(later)) if later else None


_MOVE = """UPDATE apikeys_auditevent SET occurred_at = occurred_at - interval '40 days',
    id = (lpad(to_hex(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint
        - 40 * 86400000::bigint), 12, '0') || right(translate(id::text, '-', ''), 20))::uuid
    WHERE occurred_at > now() - interval '1 day'"""


def make_events_older(server: LiveServer) -> None:
    """Move today's audit events before this month, so that housekeeping archives them.

    The ids begin with the time, and determine the partition. The audit log is append-only, so the
    function disables the trigger as the administrator. Writers wait during the transaction.
    """
    with psycopg.connect(server.environment["DATABASE_URL"]) as connection:
        trigger = "TRIGGER auditevent_append_only"
        connection.execute(f"ALTER TABLE apikeys_auditevent DISABLE {trigger}")
        connection.execute(_MOVE)
        connection.execute(f"ALTER TABLE apikeys_auditevent ENABLE ALWAYS {trigger}")
