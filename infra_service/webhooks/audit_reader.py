"""Reading the trail so that no event is left out, also when it commits late.

The id and the time of an event are given before its transaction commits, so whoever has read up to
some id may have passed one that is not there yet. What is read here is in an order that nothing
enters behind.

- PostgreSQL writes the id of its transaction beside each event (``transaction_id``, a column
  that only this module knows, with a default). Only transactions are read that are older than
  all that still run; of these, none can come. So events of two transactions at once are read when
  both have ended.
- SQLite has one writer at a time, so its row ids are in the order of the commits. VACUUM gives new
  ones and keeps their order, so the position is an event, and its row id is looked up.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from django.db import connection, transaction
from django.utils import timezone

from apikeys.models import AuditEvent
from infra_service.webhooks.models import TrailPosition

if TYPE_CHECKING:
    import datetime as dt

#: Events that are read at once.
MOST: Final = 500
_LAST: Final = uuid.UUID(int=2**128 - 1)
_COLUMNS: Final = "e.id, e.occurred_at, e.action, e.actor_name, e.resource_id, e.details"
_BEFORE: Final = f"""
    SELECT {_COLUMNS}, e.transaction_id::text AS transaction FROM apikeys_auditevent e
    WHERE (e.transaction_id, e.id) > (%s::text::xid8, %s::uuid)
      AND e.transaction_id < {{}}(pg_current_snapshot())
    ORDER BY e.transaction_id, e.id LIMIT %s
"""  # noqa: S608 - nothing in it is from outside
#: All committed events.
_COMMITTED: Final = _BEFORE.format("pg_snapshot_xmax")
#: Those before which no transaction that still runs can put another one.
_POSTGRESQL: Final = _BEFORE.format("pg_snapshot_xmin")
_SQLITE: Final = f"""
    SELECT {_COLUMNS}, NULL AS "transaction" FROM apikeys_auditevent e
    WHERE e.rowid > COALESCE((SELECT rowid FROM apikeys_auditevent WHERE id = %s), 0)
    ORDER BY e.rowid LIMIT %s
"""  # noqa: S608 - nothing in it is from outside


def begin() -> None:
    """Let the trail be read from now on, unless it is read already."""
    if not TrailPosition.objects.exists():
        TrailPosition.objects.bulk_create([_now()], ignore_conflicts=True)


def locked_position() -> TrailPosition | None:
    """Return the position, which is nobody else's until the transaction ends; or None."""
    rows = TrailPosition.objects.all()
    if connection.features.has_select_for_update_skip_locked:
        rows = rows.select_for_update(skip_locked=True)
    position = rows.first()
    if position is not None and _is_of_another_cluster(position):
        position = _now()
        position.save(force_update=True)
    return position


def read(position: TrailPosition) -> list[AuditEvent]:
    """Return the next events of the trail, and move the position behind them, unsaved."""
    events = _behind(position, MOST)
    if events:
        number = getattr(events[-1], "transaction")  # noqa: B009 - a column of the query only
        position.transaction_id = None if number is None else int(number)
        position.event_id = events[-1].pk
    return [event for event in events if event.occurred_at >= position.began_at]


def has_unread(position: TrailPosition) -> bool:
    """Whether there is something to read; asked before the lock is taken, SQLite's only one."""
    return bool(_behind(position, 1)) or _is_of_another_cluster(position)


def unread_since() -> dt.datetime | None:
    """Return the time of the first unread event, even when it may not be read yet.

    None when every event is read, and before the first reading.
    """
    position = TrailPosition.objects.first()
    events = [] if position is None else _behind(position, 1, _COMMITTED)
    return events[0].occurred_at if events else None


def _behind(position: TrailPosition, most: int, query: str = _POSTGRESQL) -> list[AuditEvent]:
    if connection.vendor == "postgresql":
        parameters = [str(position.transaction_id), position.event_id, most]
        return list(AuditEvent.objects.raw(query, parameters))
    last = position.event_id
    return list(AuditEvent.objects.raw(_SQLITE, ["" if last is None else last.hex, most]))


def _now() -> TrailPosition:
    """Return the position at the end of what is in the trail now."""
    began_at = timezone.now()
    if connection.vendor != "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT id FROM apikeys_auditevent ORDER BY rowid DESC LIMIT 1")
            row = cursor.fetchone()
        return TrailPosition(event_id=None if row is None else uuid.UUID(row[0]), began_at=began_at)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text")
        oldest = int(cursor.fetchone()[0])
    # Behind all that older transactions have; what runs now is read when it has ended.
    return TrailPosition(transaction_id=oldest - 1, event_id=_LAST, began_at=began_at)


def _is_of_another_cluster(position: TrailPosition) -> bool:
    """Whether the database came out of a dump, into a server that counts from the beginning."""
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        return int(cursor.fetchone()[0]) <= (position.transaction_id or 0)
