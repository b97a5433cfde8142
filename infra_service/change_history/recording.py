"""Store the changes of each version when the resource index reads the version.

The transaction that stores the changes also advances a position per state. Processes can therefore
be killed at any time, and several can run: the changes of each version are stored once.
"""

from __future__ import annotations

import secrets
import uuid
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import Error as DatabaseFailure
from django.db import transaction
from django.dispatch import Signal
from rest_framework.exceptions import APIException

from infra_service.change_history.models import UNKNOWN, Change, Kind, RecordedState
from infra_service.lib.database.batches import in_batches
from infra_service.lib.database.months import milliseconds_of
from infra_service.lib.database.retries import retrying
from states.document import contents
from states.errors import DocumentUnreadable, StorageUnavailable
from states.keeping.loading import loader
from states.models import State, StateVersion
from states.models.resources import MOST_BYTES

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Sequence

    from django.db.models import QuerySet

    from states.document.resource_changes import ResourceChange
    from states.keeping.loading import Load

log = structlog.get_logger("infra_service.change_history")

#: Sent once for each new ``version`` of a ``state``, in the transaction that stores its changes.
changes_recorded = Signal()

#: The reasons for unknown changes, in addition to the reasons of errors.
PREDECESSOR_REMOVED: Final = "PREDECESSOR_REMOVED"
NAMES_TOO_LONG: Final = "NAMES_TOO_LONG"
UNEXPECTED: Final = "UNEXPECTED"
#: The number of rows per statement.
_ROWS: Final = 500
_COLUMNS: Final = ("pk", "number", "created_at", "created_by", "token_id")


def receive(*, state: State, load: Load, **_signal: Any) -> None:
    """Store the changes of a state's versions up to ``state.version_number``."""
    _ensure_position(state)
    # The upper bound ends the loop, even if versions arrive faster than the loop stores them.
    known = _versions(state).filter(number__lte=state.version_number)
    while versions := list(known.filter(number__gt=_position(state).values("number"))):
        for version in versions:
            if not _record(state, version, load, moves=True):
                break  # another process has stored it


def rebuild() -> Iterator[State]:
    """Store the changes of all versions of all states again, and yield each state.

    A run can be stopped at any time and repeated. The resource index can run at the same time.

    Raises:
        StorageUnavailable: the object store does not respond.
    """
    for state in in_batches(State.objects.filter(version_number__gt=0)):
        _ensure_position(state)
        last, load = 0, loader()
        while versions := list(_versions(state).filter(number__gt=last)):
            for version in versions:
                _record(state, version, load, moves=False)
            last = versions[-1].number
        yield state


def _ensure_position(state: State) -> None:
    RecordedState.objects.bulk_create([RecordedState(state=state)], ignore_conflicts=True)


def _position(state: State) -> QuerySet[RecordedState]:
    return RecordedState.objects.filter(state=state)


def _versions(state: State) -> QuerySet[StateVersion]:
    """Return the versions of a state, the oldest first."""
    return StateVersion.objects.filter(state=state).order_by("number").only(*_COLUMNS)


@retrying  # a rebuild and the resource index can block each other
def _record(state: State, version: StateVersion, load: Load, *, moves: bool) -> bool:
    """Replace the changes of a version. With ``moves``, also advance the position of the state.

    Return False if the state was removed, or if the position has already reached the version and
    the changes are unknown now or ``moves`` is set. The stored changes then stay. The lock on the
    position prevents two processes from storing the same version at the same time.
    """
    changes, problem = _changes_of(state, version, load)
    rows = _rows(state, version, changes, problem)
    with transaction.atomic():
        position = _position(state)
        if not moves and position.select_for_update().first() is None:
            return False  # retention has removed the state
        is_new = position.filter(number__lt=version.number).update(number=version.number)
        if not is_new and (moves or problem):
            return False
        Change.objects.filter(version=version).delete()
        # Retention removes a version with its changes. Rows that are stored afterwards would stay.
        locked = StateVersion.objects.select_for_update(no_key=True)
        own = locked.filter(pk=version.pk, state=state)
        if own.values_list("pk", flat=True).first() is not None:
            Change.objects.bulk_create(rows, batch_size=_ROWS)
            # No signal for versions that a release without changes has already indexed.
            if is_new and version.number > state.indexed_number:
                changes_recorded.send(Change, state=state, version=version, changes=rows)
    return True


def _changes_of(
    state: State, version: StateVersion, load: Load
) -> tuple[list[ResourceChange], str]:
    """Return the changes of a version, or the reason why they are unknown."""
    earlier = StateVersion.objects.filter(state=state, number__lt=version.number)
    before_id = earlier.order_by("-number").values_list("pk", flat=True).first()
    if before_id is None and version.number > 1:
        return [], PREDECESSOR_REMOVED
    try:
        before = None if before_id is None else load(before_id, state.pk)
        if before is not None and not before.gzipped:  # removed meanwhile
            return [], PREDECESSOR_REMOVED
        changes = contents.changed_resources(before, load(version.pk, state.pk))
    except StorageUnavailable:
        raise
    except (APIException, DocumentUnreadable) as error:
        return [], error.default_code
    except DatabaseFailure:
        raise
    except Exception:
        # Otherwise, the error would stop the indexing of all other states in each pass.
        log.exception("changes_not_determined", state_id=str(state.pk), version=version.number)
        return [], UNEXPECTED
    return (changes, "") if all(map(_is_storable, changes)) else ([], NAMES_TOO_LONG)


def _is_storable(change: ResourceChange) -> bool:
    texts = (change.address, change.previous_address, change.type, change.provider)
    return all(len(text.encode()) <= MOST_BYTES and "\0" not in text for text in texts) and not any(
        "\0" in name for name in change.attributes
    )


def _rows(
    state: State, version: StateVersion, changes: Sequence[ResourceChange], problem: str
) -> list[Change]:
    of_version = {
        "kind": Kind.RESOURCE,
        "occurred_at": version.created_at,
        "created_by": version.created_by,
        "token_id": version.token_id,
        "version": version,
        "version_number": version.number,
        "state": state,
        "component_id": state.component_id,
        "environment_id": state.environment_id,
    }
    if problem:
        changes_or_problem: list[dict[str, Any]] = [{"action": UNKNOWN, "problem": problem}]
    else:
        changes_or_problem = [change._asdict() for change in changes]
    ids = ids_at(version.created_at, len(changes_or_problem))
    return [
        Change(id=id_, **of_version, **one)
        for id_, one in zip(ids, changes_or_problem, strict=True)
    ]


def ids_at(moment: dt.datetime, number: int) -> Iterator[uuid.UUID]:
    """Yield UUIDv7 (RFC 9562) of the moment, in descending order.

    The ids share the first 12 random bits, so that the changes of a version stay together among
    the changes of the same millisecond. The next bits are a counter.
    """
    start = milliseconds_of(moment) << 80 | 0x7 << 76 | secrets.randbits(12) << 64
    for position in reversed(range(number)):
        yield uuid.UUID(int=start | 0x2 << 62 | position << 40 | secrets.randbits(40))
