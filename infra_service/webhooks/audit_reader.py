"""Read the audit log without gaps, even when events commit late.

An event gets its id and time before its transaction commits. A reader that continues after the
last id can therefore miss an event that commits later. This module uses an order in which every new
event appears after the reader's position.

- PostgreSQL records the transaction id of each event (``transaction_id``, a column with a default
  that only this module uses). The reader selects events of transactions that are older than every
  running transaction. These transactions have finished and add no events.
- SQLite has one writer at a time, so row ids follow the order of the commits. VACUUM renumbers rows
  but keeps their order, so the position is an event whose row id is looked up.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Final

from django.db import connection, transaction
from django.utils import timezone

from apikeys.models import AuditEvent
from infra_service.lib.database.months import lowest_id, moment_of
from infra_service.webhooks.models import TrailPosition

#: The maximum number of events per read.
MOST: Final = 500
# The maximum time between the creation of an event's id and the commit of its transaction.
_LONGEST_TRANSACTION: Final = dt.timedelta(days=1)
_LAST: Final = uuid.UUID(int=2**128 - 1)
_COLUMNS: Final = (
    "e.id, e.occurred_at, e.action, e.actor_id, e.actor_name, e.token_id, e.resource_id, "
    "e.address, e.request_id, e.client_request_id, e.details"
)
_BEFORE: Final = f"""
    SELECT {_COLUMNS}, e.transaction_id::text AS transaction FROM apikeys_auditevent e
    WHERE (e.transaction_id, e.id) > (%s::text::xid8, %s::uuid)
      AND e.transaction_id < {{}}(pg_current_snapshot())
      AND e.id >= %s::uuid
    ORDER BY e.transaction_id, e.id LIMIT %s
"""  # noqa: S608 - nothing in it is from outside
#: All committed events.
_COMMITTED: Final = _BEFORE.format("pg_snapshot_xmax")
#: Committed events that no running transaction can precede.
_POSTGRESQL: Final = _BEFORE.format("pg_snapshot_xmin")
_SQLITE: Final = f"""
    SELECT {_COLUMNS}, NULL AS "transaction" FROM apikeys_auditevent e
    WHERE e.rowid > COALESCE((SELECT rowid FROM apikeys_auditevent WHERE id = %s), 0)
    ORDER BY e.rowid LIMIT %s
"""  # noqa: S608 - nothing in it is from outside


def begin() -> None:
    """Start to read the audit log at its current end, unless a position exists."""
    if not TrailPosition.objects.exists():
        TrailPosition.objects.bulk_create([_present_end()], ignore_conflicts=True)


def locked_position() -> TrailPosition | None:
    """Lock the position until commit and return it, or None if it is missing or already locked."""
    rows = TrailPosition.objects.all()
    if connection.features.has_select_for_update_skip_locked:
        rows = rows.select_for_update(skip_locked=True)
    position = rows.first()
    if position is not None and _is_of_another_cluster(position):
        position = _present_end()
        position.save(force_update=True)
    return position


def pause_publishers() -> None:
    """Wait until no process is publishing, and prevent publishing until commit."""
    TrailPosition.objects.select_for_update().first()


def read(position: TrailPosition) -> list[AuditEvent]:
    """Return the next events and advance the position, without saving it."""
    events = _unread(position, MOST)
    if events:
        number = getattr(events[-1], "transaction")  # noqa: B009 - a column of the query only
        position.transaction_id = None if number is None else int(number)
        position.event_id = events[-1].pk
    return [event for event in events if event.occurred_at >= position.began_at]


def has_unread(position: TrailPosition) -> bool:
    """Return whether there are unread events. Call this before acquiring SQLite's only lock."""
    return bool(_unread(position, 1)) or _is_of_another_cluster(position)


def unread_since() -> dt.datetime | None:
    """Return the time of the first unread event, even if it cannot be read yet.

    Return None if every event has been read, or before the first read.
    """
    position = TrailPosition.objects.first()
    events = [] if position is None else _unread(position, 1, _COMMITTED)
    return events[0].occurred_at if events else None


def _unread(position: TrailPosition, most: int, query: str = _POSTGRESQL) -> list[AuditEvent]:
    if connection.vendor == "postgresql":
        after = [str(position.transaction_id), position.event_id]
        parameters = [*after, _lowest_unread(position), most]
        return list(AuditEvent.objects.raw(query, parameters))
    last = position.event_id
    return list(AuditEvent.objects.raw(_SQLITE, ["" if last is None else last.hex, most]))


def _lowest_unread(position: TrailPosition) -> uuid.UUID:
    """Return a limit below the ids of unread events, so that only a few partitions are read."""
    read = position.event_id
    since = position.began_at if read is None or read == _LAST else moment_of(read)
    return lowest_id(min(since, timezone.now()) - _LONGEST_TRANSACTION)


def _present_end() -> TrailPosition:
    """Return the position at the current end of the audit log."""
    began_at = timezone.now()
    if connection.vendor != "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT id FROM apikeys_auditevent ORDER BY rowid DESC LIMIT 1")
            row = cursor.fetchone()
        return TrailPosition(event_id=None if row is None else uuid.UUID(row[0]), began_at=began_at)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text")
        oldest = int(cursor.fetchone()[0])
    # Behind all events of finished transactions. Events of running transactions are read later.
    return TrailPosition(transaction_id=oldest - 1, event_id=_LAST, began_at=began_at)


def _is_of_another_cluster(position: TrailPosition) -> bool:
    """Return whether a dump was restored into a server with its own transaction counter."""
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        return int(cursor.fetchone()[0]) <= (position.transaction_id or 0)
