"""Archive events: write a file, verify it, record it, then remove the events."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import TYPE_CHECKING, Any, Final

from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from apikeys import audit
from apikeys.archiving import files, removing
from apikeys.archiving.files import ArchiveError
from apikeys.models import AuditArchive, AuditEvent
from infra_service.lib.database.months import moment_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from django.db.models import QuerySet

    from apikeys.actors import Actor

#: The maximum number of events per archive, about 5 MB after compression.
FILE_EVENTS: Final = 50_000
# Open transactions may commit events that are older than visible events.
_YOUNGEST: Final = dt.timedelta(days=1)
_BATCH: Final = 1000
_COLUMNS: Final = tuple(field.attname for field in AuditEvent._meta.concrete_fields)


def archive_next(*, before: dt.datetime, directory: Path, actor: Actor) -> AuditArchive | None:
    """Archive the oldest events, at most ``FILE_EVENTS``, and return the archive, if any.

    Return None if no event is older than ``before``. The function first completes an unfinished
    earlier call. Call the function outside of a transaction.

    Raises:
        ArchiveError: a file is invalid, ``before`` is less than a day ago, or the role lacks the
            privilege to archive. Even then, every removed event is in a verified archive.
    """
    if before > timezone.now() - _YOUNGEST:
        raise ArchiveError("only events older than a day can be archived")
    if missing := missing_privilege():
        raise ArchiveError(f"{missing}: archive as the owner of the tables")
    with files.only_one(directory):
        last = AuditArchive.objects.order_by("number").last()
        if last is not None and not removing.is_in_month(last.last_id):
            removing.remove(last, directory)
        events = _next_events(before, directory)
        if events is None:
            return None
        number = 1 if last is None else last.number + 1
        previous = files.FIRST if last is None else last.digest
        path = files.path_of(directory, number)
        if not path.exists():
            files.write(path, number, previous, itertools.islice(events, FILE_EVENTS))
        archive = _enter(path, number, previous, actor)
        if not removing.is_in_month(archive.last_id):
            removing.remove(archive, directory)
        return archive


def _next_events(before: dt.datetime, directory: Path) -> Iterator[dict[str, Any]] | None:
    """Return the oldest unarchived events of one partition, or None if no events are old enough.

    The events of a month are archived when all of them are old enough. Then the partition of the
    month is dropped.
    """
    while (first := AuditEvent.objects.order_by("pk").first()) is not None:
        partition = removing.partition_of(first.pk)
        if partition is None or not partition.is_month:
            if first.occurred_at >= before:
                return None
            others = {} if partition is None else {"pk__lt": partition.upper}
            in_order = _in_order(AuditEvent.objects.filter(**others))
            # Stop at the first event that is too new, to preserve the order of the audit log.
            return itertools.takewhile(lambda event: event["occurred_at"] < before, in_order)
        if moment_of(partition.upper) > before:
            return None
        left = removing.unarchived(partition, directory)
        if left.exists():
            return _in_order(left)
        removing.drop(partition, directory)
    return None


def _in_order(queryset: QuerySet[AuditEvent]) -> Iterator[dict[str, Any]]:
    events = rest = queryset.order_by("pk").values(*_COLUMNS)
    while page := list(rest[:_BATCH]):
        yield from page
        rest = events.filter(pk__gt=page[-1]["id"])


def _enter(path: Path, number: int, previous: str, actor: Actor) -> AuditArchive:
    """Verify the file against the audit log and record it.

    The file may come from a call that was killed before this step, or from another database.
    """
    found = files.contents(path)
    if (found.number, found.previous) != (number, previous) or not _is_recorded(path):
        raise ArchiveError(
            f"{path.name} exists and is not an archive of this audit log: move the file elsewhere"
        )
    archive = AuditArchive(
        number=number,
        digest=found.digest,
        events=found.events,
        first_id=found.first_id,
        last_id=found.last_id,
    )
    try:
        with transaction.atomic():
            archive.save(force_insert=True)
            audit.authorize_and_record(
                actor, "audit.archive", path.name, events=found.events, digest=found.digest
            )
    except DatabaseError as error:
        raise ArchiveError(f"{path.name} was not recorded: {error}") from error
    return archive


def _is_recorded(path: Path) -> bool:
    """Return whether each event of the file equals its row in the audit log."""
    texts = files.events(path)
    while batch := list(itertools.islice(texts, _BATCH)):
        ids = [files.id_of(path, text) for text in batch]
        events = AuditEvent.objects.filter(pk__in=ids).order_by("pk").values(*_COLUMNS)
        if [files.encode(event) for event in events] != batch:
            return False
    return True


def missing_privilege() -> str:
    """Return the reason why the role may not archive, as a clause, or an empty text.

    On PostgreSQL, only the owner of the tables has the privileges. The role of the service does
    not. Missing tables require no privilege.
    """
    if connection.vendor != "postgresql":
        return ""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_user, has_table_privilege(to_regclass(%s), 'INSERT') AND"
            " (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass(%s))",
            [AuditArchive._meta.db_table, AuditEvent._meta.db_table],
        )
        role, may_archive = cursor.fetchone()
    return f"the role {role} cannot archive audit events" if may_archive is False else ""
