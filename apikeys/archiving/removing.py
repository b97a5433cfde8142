"""Removal of archived events: row by row, or on PostgreSQL by dropping the partition of a month."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from django.db import DatabaseError

from apikeys.archiving import files
from apikeys.archiving.files import ArchiveError
from apikeys.models import AuditArchive, AuditEvent
from infra_service.lib.database.postgresql.partitions import Partition, partitions_of

if TYPE_CHECKING:
    import uuid
    from pathlib import Path

    from django.db.models import QuerySet

_BATCH: Final = 1000


def partition_of(event_id: uuid.UUID) -> Partition | None:
    """Return the partition that contains the event, if any."""
    found = partitions_of(AuditEvent._meta.db_table)
    return next((partition for partition in found if partition.has(event_id)), None)


def is_in_month(event_id: uuid.UUID) -> bool:
    """Return whether the event is dropped with its month rather than deleted individually."""
    partition = partition_of(event_id)
    return partition is not None and partition.is_month


def remove(archive: AuditArchive, directory: Path) -> None:
    """Delete the remaining events of an archive, in batches.

    Raises:
        ArchiveError: the file differs from the recorded archive, or a deletion failed.
    """
    if not AuditEvent.objects.filter(pk__range=(archive.first_id, archive.last_id)).exists():
        return
    path = _verified(archive, directory)
    texts = files.events(path)
    while batch := [files.id_of(path, text) for text in itertools.islice(texts, _BATCH)]:
        try:
            AuditEvent.objects.filter(pk__in=batch).delete()
        except DatabaseError as error:
            raise ArchiveError(f"events were not removed: {error}") from error


def unarchived(month: Partition, directory: Path) -> QuerySet[AuditEvent]:
    """Return the events of a month that no archive contains.

    Usually, these events follow the archived events. If an event arrived late, or the previous
    release deleted some events, the function deletes the remaining archived events row by row.
    """
    archives, events = _archives_of(month), _events_of(month)
    last = archives.order_by("last_id").last()
    if last is None:
        return events
    number = sum(archive.events for archive in archives)
    if events.filter(pk__lte=last.last_id).count() == number:
        return events.filter(pk__gt=last.last_id)
    for archive in archives:
        remove(archive, directory)
    return events


def drop(month: Partition, directory: Path) -> None:
    """Drop a month without unarchived events, after verification of its archive files.

    If an event arrives during the verification, the month is not dropped.

    Raises:
        ArchiveError: a file differs from the recorded archive, or the table was in use for too
            long.
    """
    events = _events_of(month).count()
    if events:
        for archive in _archives_of(month):
            _verified(archive, directory)
    try:
        month.drop(events)
    except DatabaseError as error:
        raise ArchiveError(f"{month.name} was not dropped: {error}") from error


def _verified(archive: AuditArchive, directory: Path) -> Path:
    path = files.path_of(directory, archive.number)
    if files.contents(path).digest != archive.digest:
        raise ArchiveError(f"{path.name} differs from the recorded archive")
    return path


def _archives_of(month: Partition) -> QuerySet[AuditArchive]:
    archives = AuditArchive.objects.filter(first_id__gte=month.lower, last_id__lt=month.upper)
    return archives.order_by("number")


def _events_of(month: Partition) -> QuerySet[AuditEvent]:
    return AuditEvent.objects.filter(pk__gte=month.lower, pk__lt=month.upper)
