"""Index the resources of states after their pushes, state by state.

The row of a state shows whether the state is due. Each state is indexed in a transaction that
commits only if the state has not changed. A process can therefore be killed at any time, and
several processes can run. If the database supports row locks, each process skips the states that
another process indexes.
"""

from __future__ import annotations

import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
from django.db import connection, transaction
from django.db.models import Q
from django.dispatch import Signal
from rest_framework.exceptions import APIException

from infra_service.lib import encryption
from infra_service.lib.database.batches import in_batches
from infra_service.lib.database.failures import is_failure
from infra_service.lib.database.retries import retrying
from states.errors import DocumentUnreadable, StateEncrypted
from states.keeping.attempts import Attempts
from states.keeping.loading import loader
from states.models import (
    KEY_NAME_LENGTH,
    OUTDATED,
    CountTotal,
    ResourceEntry,
    State,
    StateCount,
    StateVersion,
)
from states.models.engines import Engine
from states.models.resource_counts import engine_counts
from states.resources.dependencies import write_dependencies
from states.resources.entries import write_entries
from states.resources.extraction import Contents, NamesTooLongError, find_contents
from states.resources.failing_checks import report_failing_checks
from states.resources.leaked_tokens import report_leaks
from states.resources.leaks import Leak, find_leaks
from states.targets import StateTarget

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Sequence

    from states.keeping.loading import Load
    from states.models import StateQuerySet

log = structlog.get_logger("states.resources")

#: A signal with ``state`` and ``load``, sent before a new current version is indexed. ``load``
#: returns the document for the ids of a version and its state, and caches the last two. If a
#: receiver fails, the state is indexed later. A receiver may be called again for the same version.
version_found = Signal()
#: The number of the indexing rules. Increase it with each change of the index data. States that
#: were indexed with another number are indexed again.
RULES: Final = 7
_STATES: Final = 1_000
#: Problems of a document that are not reasons of errors: a name exceeds the limit of the index, or
#: the code of the service fails on the document.
NAMES_TOO_LONG: Final = "NAMES_TOO_LONG"
UNEXPECTED: Final = "UNEXPECTED"
#: Problems that a restored object or a configured key can solve without a change of the state.
_TEMPORARY: Final = [error.default_code for error in DocumentUnreadable.__subclasses__()]
#: The passes of ``renew_digests``, and the seconds between passes.
_PASSES: Final = 5
_PAUSE: Final = 1.0


class Indexed(NamedTuple):
    """An indexed state; ``problem`` is the reason why its document cannot be read, or empty."""

    state_id: uuid.UUID
    version_number: int
    resources: int
    problem: str


def index_due() -> Iterator[Indexed]:
    """Index the states that are due, in the order of their ids, and yield each result.

    States with a new version precede states that are only indexed again.

    Raises:
        IncompleteError: some states failed, and all others were indexed.
        StorageUnavailable, django.db.Error: see ``states.keeping.attempts``.
    """
    due = _Pass()
    yield from due.each_of(State.objects.behind())
    for indexed in due.each_of(State.objects.outdated()):
        yield indexed
        yield from due.each_of(State.objects.behind())
    due.attempts.finish()


class _Pass:
    """A pass over the due states that indexes each state at most once."""

    def __init__(self) -> None:
        self.attempts = Attempts()
        self._failed: set[uuid.UUID] = set()

    def each_of(self, states: StateQuerySet) -> Iterator[Indexed]:
        for state in in_batches(states.only("pk", "current_version_id")):
            if state.pk in self._failed:
                continue
            version_id: Any = state.current_version_id  # due states have a current version
            work = partial(_index, state.pk, version_id)
            indexed, problem = self.attempts.run(work, state_id=str(state.pk))
            if problem:
                self._failed.add(state.pk)
            if indexed is not None:
                yield indexed


def stamp() -> str:
    """Return the value of ``index_key``: the number of the rules, and the key for digests."""
    return f"{RULES}.{encryption.current_key()[:KEY_NAME_LENGTH]}"


def mark_for_indexing(*, everything: bool = False) -> None:
    """Mark states that must be indexed again. Their entries stay until then.

    These are the states that were indexed with other rules or another key, and the states with
    documents that could not be loaded or decrypted. ``everything`` marks all states. The function
    also removes the entries and counts of states that an earlier release deleted.
    """
    counted = Q(indexed_number__gt=0) | Q(engine__isnull=False)
    for state in in_batches(State.objects.filter(counted, deleted_at__isnull=False)):
        with transaction.atomic():
            State.objects.filter(pk=state.pk).update(indexed_number=0)
            ResourceEntry.objects.forget(state.pk)
    for used in _stamps():
        if everything or used != stamp():
            _outdate(State.objects.indexed().filter(index_key=used))
    _outdate(State.objects.indexed().filter(index_problem__in=_TEMPORARY))


def renew_digests() -> Iterator[Indexed]:
    """Index the states whose digests do not use the first key, and yield each result.

    The function waits a few seconds for states that another indexer is processing.

    Raises:
        StorageUnavailable, django.db.Error: see ``states.keeping.attempts``.
    """
    mark_for_indexing()
    others, due = State.objects.with_digests_of_other_keys(encryption.current_key()), _Pass()
    for _ in range(_PASSES):
        yield from due.each_of(others)
        if not others.exists():
            return
        time.sleep(_PAUSE)


def _stamps() -> Iterator[str]:
    """Yield the distinct values of ``index_key``, each with a single index lookup."""
    ordered = State.objects.indexed().order_by("index_key").values_list("index_key", flat=True)
    last: str | None = OUTDATED
    while (last := ordered.filter(index_key__gt=last).first()) is not None:
        yield last


def _outdate(states: StateQuerySet) -> None:
    """Mark each state only once, because an indexer with other rules may index it concurrently."""
    pks = states.order_by("pk").values_list("pk", flat=True)
    ids = list(pks[:_STATES])
    while ids:
        State.objects.filter(pk__in=ids).update(index_key=OUTDATED)
        ids = list(pks.filter(pk__gt=ids[-1])[:_STATES])


@retrying
def _index(state_id: uuid.UUID, version_id: uuid.UUID) -> Indexed | None:
    """Index a state. Return None if another indexer claimed the state, or the state changed."""
    # 1. Claim the version.
    with _claimed(state_id, version_id) as is_ours:
        due = State.objects.due().filter(pk=state_id, current_version_id=version_id)
        state = due.first() if is_ours else None
        if state is None:
            return None
        load = loader()
        if state.indexed_number < state.version_number:
            version_found.send(State, state=state, load=load)
        # 2. Load and decrypt the document, and find its resources.
        read = _read(state, load)
        try:
            is_replaced = _replace(state, read)
        except Exception as error:
            if is_failure(error):
                raise
            # The database would refuse the same data again in each pass.
            log.exception("document_not_indexed", state_id=str(state.pk))
            read = _Read(problem=UNEXPECTED, leaks=read.leaks)
            is_replaced = _replace(state, read)
        if not is_replaced:
            return None
        return Indexed(state.pk, state.version_number, len(read.contents.resources), read.problem)


@contextlib.contextmanager
def _claimed(state_id: uuid.UUID, version_id: uuid.UUID) -> Iterator[bool]:
    """Lock the version's row against other indexers. Yield whether the lock was acquired.

    Pushes and LOCKs do not wait for this lock. On Citus, a row lock requires a condition on the
    state.
    """
    if not connection.features.has_select_for_update_skip_locked:
        yield True
        return
    with transaction.atomic():
        version = StateVersion.objects.select_for_update(skip_locked=True, no_key=True)
        own = version.filter(pk=version_id, state_id=state_id).values_list("pk", flat=True)
        yield own.first() is not None


class _Read(NamedTuple):
    """The index data of a document, or the reason why its resources are unreadable."""

    contents: Contents = Contents()
    problem: str = ""
    leaks: Sequence[Leak] = ()

    @property
    def is_client_encrypted(self) -> bool:
        """Return whether OpenTofu encrypted the document on the client."""
        return self.problem == StateEncrypted.default_code

    @property
    def engine(self) -> Engine:
        """Return the engine that wrote the document. Only OpenTofu encrypts documents."""
        if self.is_client_encrypted:
            return Engine.OPENTOFU
        return Engine.of(resource.provider for resource in self.contents.resources)


def _read(state: State, load: Load) -> _Read:
    """Return the index data of the current version.

    Raises:
        StorageUnavailable: the object store does not respond.
    """
    version_id: Any = state.current_version_id
    try:
        document = load(version_id, state.pk)
    except DocumentUnreadable as error:
        return _Read(problem=error.default_code)
    leaks: Sequence[Leak] = ()
    try:
        # Leaks are also reported for a document with unreadable resources.
        leaks = find_leaks(document)
        return _Read(find_contents(document), leaks=leaks)
    except APIException as error:
        return _Read(problem=error.default_code, leaks=leaks)
    except NamesTooLongError:
        return _Read(problem=NAMES_TOO_LONG, leaks=leaks)
    except Exception:
        # The error would otherwise stop the indexing of the other states in each pass.
        log.exception("document_not_indexed", state_id=str(state.pk))
        return _Read(problem=UNEXPECTED, leaks=leaks)


def _replace(state: State, read: _Read) -> bool:
    """Write the index data of the state. Roll back and return False if the state changed."""
    contents = read.contents
    with transaction.atomic():
        # 3. Write resources and dependencies, and report leaked tokens and failing checks.
        write_entries(state, contents.resources)
        write_dependencies(state, contents.remote_states)
        report_leaks(state, read.leaks)
        report_failing_checks(state, contents.failing_checks)
        # 4. Mark the version as indexed, if the state has not changed. Otherwise roll back.
        as_read = State.objects.due().filter(
            pk=state.pk,
            current_version_id=state.current_version_id,
            indexed_number=state.indexed_number,
            engine=state.engine,
        )
        # The state's row is written last, because pushes wait from here until the commit.
        swapped = as_read.update(
            indexed_number=state.version_number,
            index_problem=read.problem,
            index_key=stamp(),
            engine=read.engine,
            is_client_encrypted=read.is_client_encrypted or None,
            failing_checks=list(contents.failing_checks) or None,
        )
        if swapped:
            CountTotal.objects.move(
                state.environment_id,
                engine_counts(state.engine, is_encrypted=state.is_client_encrypted),
                engine_counts(read.engine, is_encrypted=read.is_client_encrypted),
            )
            StateCount.objects.replace(state.pk, contents.amounts, **StateTarget.of(state).ids)
        else:
            transaction.set_rollback(True)
    return bool(swapped)
