"""Read from a replica that has caught up with the primary, or else from the primary.

Only this module chooses the server. It reads the primary's log position. A replica that has
replayed the log up to this position contains everything acknowledged before, including this
client's writes. The module does not use a replica that is late, unreachable or failing, or that has
another history, such as a former primary. See docs/adr/0027-replica-reads-after-catch-up.md.
"""

from __future__ import annotations

import contextvars
import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import structlog
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connection, connections
from prometheus_client import Counter, Histogram

from infra_service.lib.database.deadline import within

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpResponse

T = TypeVar("T")

log = structlog.get_logger("infra_service.replica")

ALIAS: Final = "replica"
HEADER: Final = "X-Data-Age"
#: The seconds for which a worker process skips a replica that was behind or unreachable.
PAUSE: Final = 1.0
#: The seconds after which the primary runs a query instead of the replica.
QUERY: Final = 1.0
#: The seconds between tests of a replica that is catching up.
_STEP: Final = 0.005

_READS: Final = Counter(
    "infra_replica_reads", "Reads that were eligible for the replica, by outcome.", ["outcome"]
)
_SERVED, _BEHIND, _AWAY = (_READS.labels(name) for name in ("replica", "behind", "away"))
_AGE: Final = Histogram(
    "infra_replica_age_seconds",
    "The maximum age of data from the replica.",
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, float("inf")),
)
#: The maximum age of data that this request has read from the replica.
_age: contextvars.ContextVar[float | None] = contextvars.ContextVar("replica_age", default=None)
_suspended_until = 0.0


def read(query: Callable[[str], T]) -> T:
    """Run a query on the replica if it has caught up, or else on the primary.

    ``query`` receives a database alias and must not write. If the replica fails, the primary runs
    the query.
    """
    if ALIAS not in connections.settings or connection.in_atomic_block:
        return query(DEFAULT_DB_ALIAS)
    if time.monotonic() < _suspended_until:
        _BEHIND.inc()
        return query(DEFAULT_DB_ALIAS)
    position = _position()
    if position.mark is None:
        if position.timeline is not None:
            _mark(position.timeline)
        _BEHIND.inc()
        return query(DEFAULT_DB_ALIAS)
    started = time.monotonic()
    try:
        with within(settings.DATABASE_REPLICA_MAX_LAG):
            is_there = _catches_up(position, started + settings.DATABASE_REPLICA_MAX_LAG)
        if is_there:
            with within(QUERY):
                found = query(ALIAS)
            _served(time.monotonic() - started)
            return found
        _suspend(_BEHIND, "it has not caught up")
    except Error as error:
        _suspend(_AWAY, str(error))
    return query(DEFAULT_DB_ALIAS)


def begin() -> None:
    """Reset the age at the start of a request."""
    _age.set(None)


def set_age_header(response: HttpResponse) -> None:
    """Set the header with the maximum age (s) of data from the replica, if any was read."""
    seconds = _age.get()
    if seconds is not None:
        response[HEADER] = f"{math.ceil(seconds * 1000) / 1000:.3f}"


class _Position(NamedTuple):
    """A position in the log of a server, and the identity of its history.

    On a standby, only ``system`` is known.
    """

    lsn: str | None
    #: The system identifier, which standbys share with their primary.
    system: str
    #: The timeline's number, which a promotion increments, as 8 hex digits.
    timeline: str | None
    #: A unique mark of the timeline, because promotions can reuse its number. None until it is set.
    mark: str | None


def _position() -> _Position:
    """Return the flushed log position, which is after everything acknowledged."""
    with connection.cursor() as cursor:
        # A WAL file is named after its timeline.
        cursor.execute(
            "SELECT lsn::text, system_identifier::text, number, mark::text"
            # NULL if a pooler connects to a standby.
            " FROM (SELECT CASE WHEN NOT pg_is_in_recovery()"
            " THEN pg_current_wal_flush_lsn() END AS lsn) flushed"
            " CROSS JOIN LATERAL (SELECT left(pg_walfile_name(lsn), 8) AS number) of_lsn"
            " CROSS JOIN pg_control_system()"
            " LEFT JOIN infra_service_timeline USING (number)"
        )
        return _Position(*cursor.fetchone())


def _mark(timeline: str) -> None:
    """Mark a new timeline of the primary. A read-only primary remains unmarked."""
    with suppress(Error), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO infra_service_timeline (number, mark)"
            " VALUES (%s, gen_random_uuid()) ON CONFLICT DO NOTHING",
            [timeline],
        )


def _catches_up(position: _Position, deadline: float) -> bool:
    """Return whether the replica has replayed up to the position before the deadline.

    The timeline comes from the last checkpoint, so a promoted replica needs a checkpoint first.
    """
    while True:
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(
                "SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= %s::text::pg_lsn"
                " AND system_identifier::text = %s"
                " AND lpad(upper(to_hex(timeline_id)), 8, '0') = %s"
                " AND EXISTS (SELECT FROM infra_service_timeline"
                " WHERE number = %s AND mark::text = %s)"
                " FROM pg_control_checkpoint(), pg_control_system()",
                [*position[:3], position.timeline, position.mark],
            )
            (is_there,) = cursor.fetchone()
        if is_there or time.monotonic() >= deadline:
            return bool(is_there)
        time.sleep(_STEP)


def _served(seconds: float) -> None:
    _SERVED.inc()
    _AGE.observe(seconds)
    _age.set(max(seconds, _age.get() or 0.0))


def _suspend(outcome: Counter, why: str) -> None:
    global _suspended_until  # noqa: PLW0603 - one fact of the process
    _suspended_until = time.monotonic() + PAUSE
    outcome.inc()
    log.warning("replica not read", reason=why)
