"""The parts of housekeeping: each yields the number of removed rows after each small batch."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone

from apikeys.actions.expired import remove_expired_assertions, remove_expired_tokens
from apikeys.actors import Actor
from apikeys.archiving import archive_next
from apikeys.models import AuditEvent
from infra_service.change_history import workload_changes
from infra_service.lib.api.idempotent_requests import IdempotentRequest
from infra_service.lib.database.batches import remove_in_batches
from infra_service.lib.database.postgresql.partitions import create_ahead, is_owned
from infra_service.webhooks.pruning import prune as prune_deliveries
from states.actions import removal
from states.keeping import pruning, storage, sweeping
from states.resources.leaked_tokens import remove_inactive
from workloads.history import remove_old_history
from workloads.reporting import image_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

#: The default of ``sweep_documents``.
_ORPHANS_AFTER: Final = dt.timedelta(hours=24)
# Much longer than the two days after which a part counts as late, so that a failed archive job is
# reported as late for weeks.
_ARCHIVED_ELSEWHERE: Final = dt.timedelta(days=30)

#: The tables with monthly partitions on PostgreSQL.
PARTITIONED: Final = (AuditEvent._meta.db_table,)

log = structlog.get_logger("infra_service.housekeeping")


def _actor() -> Actor:
    return Actor.of_command("housekeeping")


def _versions() -> Iterator[int]:
    """Remove old versions and deleted states, like ``prune_states``."""
    for pruned in pruning.prune(actor=_actor()):
        yield pruned.versions + pruned.states


def _catalogue() -> Iterator[int]:
    """Remove unused catalogue entries, like ``prune_catalogue``.

    This requires CATALOGUE_UNUSED_DAYS.
    """
    if settings.CATALOGUE_UNUSED_DAYS:
        before = timezone.now() - dt.timedelta(days=settings.CATALOGUE_UNUSED_DAYS)
        for removed in removal.remove_unused(before=before, actor=_actor()):
            yield len(removed)


def _objects() -> Iterator[int]:
    """Remove unreferenced objects, like ``sweep_documents``, if an object store is configured."""
    if storage.is_configured():
        for name in sweeping.sweep(older_than=_ORPHANS_AFTER, dry_run=False):
            yield 0 if name is None else 1


def _tokens() -> Iterator[int]:
    """Remove expired tokens and assertions, and old requests with an Idempotency-Key.

    Also remove findings of tokens in states, once the tokens are inactive.
    """
    yield from _all_of(
        remove_expired_tokens(actor=_actor()),
        remove_expired_assertions(),
        remove_inactive(),
        IdempotentRequest.objects.remove_old(),
    )


def _events() -> Iterator[int]:
    """Archive old events, like ``archive_audit_events``, if an archive directory is configured."""
    if settings.AUDIT_ARCHIVE_DIR:
        before = timezone.now() - dt.timedelta(days=settings.AUDIT_EVENTS_KEPT_DAYS)
        directory = Path(settings.AUDIT_ARCHIVE_DIR)
        while archive := archive_next(before=before, directory=directory, actor=_actor()):
            yield archive.events


def is_archived_elsewhere() -> bool:
    """Return whether another process, running as the table owner, archives the events.

    Without this check, this process would report daily success even if archiving had stopped. The
    check ignores archives older than `_ARCHIVED_ELSEWHERE`, so that the part succeeds again after
    an operator has turned archiving off.
    """
    if settings.AUDIT_ARCHIVE_DIR:
        return False
    recent = AuditEvent.objects.since(timezone.now() - _ARCHIVED_ELSEWHERE)
    archives = recent.filter(action="audit.archive").order_by("-occurred_at", "-pk")
    return archives.values_list("actor_name", flat=True).first() == _actor().name


def _partitions() -> Iterator[int]:
    """Create the partitions of the next months, on PostgreSQL."""
    for table in PARTITIONED if connection.vendor == "postgresql" else ():
        create_ahead(table)
        yield 0


def is_owned_elsewhere() -> bool:
    """Return whether only another process, running as the table owner, can create partitions."""
    return connection.vendor == "postgresql" and not all(map(is_owned, PARTITIONED))


def _sessions() -> Iterator[int]:
    """Remove expired sessions, like ``clearsessions``, in small transactions."""
    expired = Session.objects.filter(expire_date__lt=timezone.now())
    yield from remove_in_batches(expired, "expire_date")


def _history() -> Iterator[int]:
    """Remove old transitions and changes of workloads, and old gaps between reports.

    Also remove images of clusters that were deleted by a release without support for images.
    """
    now = timezone.now()
    yield from _all_of(
        remove_old_history(now),
        workload_changes.remove_old(now),
        workload_changes.remove_surplus(),
        image_rows.remove_orphans(),
    )


def _all_of(*works: Iterator[int]) -> Iterator[int]:
    """Run each generator until it ends or fails. Raise the first failure at the end."""
    failures: list[Exception] = []
    for work in works:
        try:
            yield from work
        except Exception as error:
            log.exception("housekeeping failed")
            failures.append(error)
    if failures:
        raise failures[0]


PARTS: Final[Mapping[str, Callable[[], Iterator[int]]]] = {
    "versions": _versions,
    "catalogue": _catalogue,
    "objects": _objects,
    "tokens": _tokens,
    "partitions": _partitions,
    "events": _events,
    "sessions": _sessions,
    "history": _history,
    "webhooks": prune_deliveries,
}
#: Conditions under which a part is left to a process of the table owner.
ELSEWHERE: Final[Mapping[str, Callable[[], bool]]] = {
    "events": is_archived_elsewhere,
    "partitions": is_owned_elsewhere,
}
