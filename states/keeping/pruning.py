"""Retention of history: remove versions in small batches.

Each state keeps the current version, the newest ``STATE_VERSIONS_KEPT`` versions, and all versions
younger than ``STATE_VERSIONS_DAYS``. A deleted state is removed with its history after
``STATE_RETENTION_DAYS``. A later push starts a new history.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Sum
from django.utils import timezone

from apikeys import audit
from infra_service.lib.database.batches import in_batches
from states.keeping import storage
from states.keeping.attempts import Attempts
from states.models import ResourceEntry, State, StateVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

    from apikeys.actors import Actor

#: Maximum versions to remove per transaction. On SQLite, all other writers wait for it.
_BATCH: Final = 50
_NOTHING: Final[dict[str, Any]] = {
    "version_number": 0,
    "current_version": None,
    "serial": None,
    "lineage": None,
    "md5": None,
    "size_bytes": None,
}
#: The fields of a workspace that stays when its history is removed.
_OF_WORKSPACE: Final = (
    "id", "component_id", "environment_id", "application_id", "revision", "created_at", "workspace",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pruned:
    """The result of a batch or dry run. ``size_bytes`` is the total size of the documents."""

    versions: int
    states: int
    size_bytes: int


def prune(*, actor: Actor, dry_run: bool = False) -> Iterator[Pruned]:
    """Remove versions and deleted states beyond their retention, and yield a result per batch.

    After the versions of a state, yield a result with zeros, so that the caller can stop. A run can
    be stopped at any time and repeated.

    Raises:
        IncompleteError: some states failed, and all others succeeded.
    """
    now, attempts = timezone.now(), Attempts()
    # The number of the newest version is an upper limit for the number of versions.
    numerous = State.objects.filter(version_number__gt=_kept())
    for state in in_batches(numerous.exclude(pk__in=_forgotten(now))):
        pruned = _prune_versions(state, now, actor, dry_run=dry_run)
        yield from attempts.each(pruned, state_id=str(state.pk))
    for state in in_batches(_forgotten(now)):
        pruned = _prune_deleted(state, actor, dry_run=dry_run)
        yield from attempts.each(pruned, state_id=str(state.pk))
    attempts.finish()


def _kept() -> int:
    kept: int = settings.STATE_VERSIONS_KEPT
    return max(kept, 1)  # the newest version is current


def _prune_versions(
    state: State, now: dt.datetime, actor: Actor, *, dry_run: bool
) -> Iterator[Pruned]:
    versions = StateVersion.objects.filter(state=state)
    newest = versions.order_by("-number").values_list("number", flat=True)
    oldest_kept = newest[_kept() - 1 : _kept()].first()
    if oldest_kept is None:
        return
    born_before = now - dt.timedelta(days=settings.STATE_VERSIONS_DAYS)
    old = versions.filter(number__lt=oldest_kept, created_at__lt=born_before)
    if dry_run:
        yield _counted(old)
        return
    while batch := list(old.order_by("number")[:_BATCH]):
        with transaction.atomic():
            _remove(state, batch)
            audit.authorize_and_record(
                actor, "state.prune", state.pk, versions=[version.number for version in batch]
            )
        yield _discard_objects(batch)
    yield Pruned(0, 0, 0)


def _forgotten(now: dt.datetime) -> QuerySet[State]:
    """Return the deleted states to remove, except locked states, which may be pushed again soon."""
    deleted_before = now - dt.timedelta(days=settings.STATE_RETENTION_DAYS)
    return State.objects.filter(deleted_at__lt=deleted_before, lock_id=None)


def _prune_deleted(state: State, actor: Actor, *, dry_run: bool) -> Iterator[Pruned]:
    history = StateVersion.objects.filter(state=state)
    if dry_run:
        yield _counted(history, states=1)
        return
    former = history.filter(number__lt=state.version_number).order_by("number")
    while batch := list(former[:_BATCH]):
        with transaction.atomic():
            if not _change_if_unchanged(state):
                break
            _remove(state, batch)
        yield _discard_objects(batch)
    else:
        yield from _remove_state(state, actor)


def _change_if_unchanged(state: State, **values: Any) -> bool:
    """Change the state if it has not changed since it was read. Return whether this succeeded."""
    changed = State.objects.as_seen(state).change(**values)
    state.revision += 1
    return bool(changed)


def _remove_state(state: State, actor: Actor) -> Iterator[Pruned]:
    """Remove a deleted state and its last version.

    A workspace that was created after the deletion stays, as a state without versions.
    """
    with transaction.atomic():
        if not _change_if_unchanged(state, **_NOTHING):
            return
        batch = list(StateVersion.objects.filter(state=state))
        _remove(state, batch)
        ResourceEntry.objects.forget(state.pk)  # rows that a release without the index left
        State.objects.filter(pk=state.pk).delete()
        if state.workspace is not None:
            kept = {name: getattr(state, name) for name in _OF_WORKSPACE}
            State.objects.bulk_create([State(**kept)])
        audit.authorize_and_record(actor, "state.purge", state.pk, version=state.version_number)
    yield _discard_objects(batch, states=1)


def _remove(state: State, batch: list[StateVersion]) -> None:
    versions = StateVersion.objects.filter(pk__in=[version.pk for version in batch], state=state)
    # The versions are locked first, because writers of rows that refer to a version also lock it.
    list(versions.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
    versions.delete()


def _discard_objects(batch: list[StateVersion], states: int = 0) -> Pruned:
    """Delete the objects of removed versions, and return the result of the batch."""
    storage.discard(*(version.object_name for version in batch))
    return Pruned(len(batch), states, sum(version.size_bytes for version in batch))


def _counted(versions: QuerySet[StateVersion], states: int = 0) -> Pruned:
    found = versions.aggregate(versions=Count("pk"), size_bytes=Sum("size_bytes", default=0))
    return Pruned(states=states, **found)
