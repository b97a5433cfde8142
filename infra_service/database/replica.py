"""Reads go to a replica that has all that the primary had at the request, or else to the primary.

The one place that decides. A position in the primary's log is taken; once the replica has replayed
up to it, it has all that was acknowledged to anybody before, and so also what this client has just
written. A replica that is not there in time, is away, fails, or follows another history (one of a
former primary) is not read. The reasons: docs/adr/0027-replicas-that-have-caught-up.md.
"""

from __future__ import annotations

import contextvars
import math
import time
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import structlog
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connection, connections
from prometheus_client import Counter, Histogram

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpResponse

T = TypeVar("T")

log = structlog.get_logger("infra_service.replica")

ALIAS: Final = "replica"
HEADER: Final = "X-Data-Age"
#: Seconds for which a replica that was behind or away is left alone, in each worker process.
PAUSE: Final = 1.0
#: Seconds between two looks at a replica that is about to catch up.
_STEP: Final = 0.005

_READS: Final = Counter("infra_replica_reads", "Reads that a replica could serve.", ["outcome"])
_SERVED, _BEHIND, _AWAY = (_READS.labels(name) for name in ("replica", "behind", "away"))
_AGE: Final = Histogram(
    "infra_replica_age_seconds",
    "How old what was read from the replica may be at most.",
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, float("inf")),
)
#: The greatest age of what this request has read from the replica.
_age: contextvars.ContextVar[float | None] = contextvars.ContextVar("replica_age", default=None)
_left_alone_until = 0.0


def read(query: Callable[[str], T]) -> T:
    """Run a query, which takes a database's alias, on the replica if that has caught up.

    What the replica cannot do, whatever the reason, the primary does. The query changes nothing.
    """
    if ALIAS not in connections.settings or connection.in_atomic_block:
        return query(DEFAULT_DB_ALIAS)
    if time.monotonic() < _left_alone_until:
        _BEHIND.inc()
        return query(DEFAULT_DB_ALIAS)
    position = _position()
    asked = time.monotonic()
    try:
        if _catches_up(position, asked + settings.DATABASE_REPLICA_MAX_LAG):
            found = query(ALIAS)
            _served(time.monotonic() - asked)
            return found
        _leave_alone(_BEHIND, "it has not caught up")
    except Error as error:
        _leave_alone(_AWAY, str(error))
    return query(DEFAULT_DB_ALIAS)


def begin() -> None:
    """Begin a request, which has read nothing yet."""
    _age.set(None)


def tell_age(response: HttpResponse) -> None:
    """Say how many seconds old what the request has read may be, unless it is the primary's."""
    seconds = _age.get()
    if seconds is not None:
        response[HEADER] = f"{math.ceil(seconds * 1000) / 1000:.3f}"


class _Position(NamedTuple):
    """A place in a log. `timeline` is the history that a promotion begins, as 8 hex digits."""

    lsn: str
    timeline: str


def _position() -> _Position:
    """Return the position behind all that was acknowledged; what is acknowledged is flushed."""
    with connection.cursor() as cursor:
        # A file of the log is named after its timeline.
        cursor.execute(
            "SELECT lsn::text, left(pg_walfile_name(lsn), 8) FROM pg_current_wal_flush_lsn() lsn"
        )
        return _Position(*cursor.fetchone())


def _catches_up(position: _Position, deadline: float) -> bool:
    """Whether the replica has replayed up to the position before the deadline.

    Its timeline is the one of its last checkpoint: it has to have had one since a promotion.
    """
    while True:
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(
                "SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= %s::text::pg_lsn"
                " AND lpad(upper(to_hex(timeline_id)), 8, '0') = %s FROM pg_control_checkpoint()",
                position,
            )
            (is_there,) = cursor.fetchone()
        if is_there or time.monotonic() >= deadline:
            return bool(is_there)
        time.sleep(_STEP)


def _served(seconds: float) -> None:
    _SERVED.inc()
    _AGE.observe(seconds)
    _age.set(max(seconds, _age.get() or 0.0))


def _leave_alone(outcome: Counter, why: str) -> None:
    global _left_alone_until  # noqa: PLW0603 - one fact of the process
    _left_alone_until = time.monotonic() + PAUSE
    outcome.inc()
    log.warning("replica not read", reason=why)
