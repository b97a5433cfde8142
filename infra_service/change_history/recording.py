"""Store the changes of each version, when the index of resources finds it.

A position per state moves in the transaction of the rows. A process may therefore be killed at any
time, and several may run: each version is stored once.
"""

from __future__ import annotations

import secrets
import uuid
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import Error as DatabaseFailure
from django.db import transaction
from rest_framework.exceptions import APIException

from infra_service.change_history.models import UNKNOWN, Change, Kind, RecordedState
from infra_service.lib.api.identifiers import milliseconds_of
from states.document import contents
from states.errors import DocumentUnreadable, StorageUnavailable
from states.keeping import reading
from states.models import State, StateVersion
from states.models.resources import MOST_BYTES

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Sequence

    from states.document.resource_changes import ResourceChange

log = structlog.get_logger("infra_service.change_history")

#: Problems besides the reasons of errors.
PREDECESSOR_REMOVED: Final = "PREDECESSOR_REMOVED"
NAMES_TOO_LONG: Final = "NAMES_TOO_LONG"
UNEXPECTED: Final = "UNEXPECTED"
#: Rows per statement.
_ROWS: Final = 500
_VERSIONS: Final = 100
_COLUMNS: Final = ("pk", "number", "created_at", "created_by", "token_id")


def receive(*, state: State, **_signal: Any) -> None:
    """Store the changes of the new versions of a state."""
    RecordedState.objects.bulk_create([RecordedState(state=state)], ignore_conflicts=True)
    while versions := _new_versions(state):
        for version in versions:
            if not _record(state, version, moves=True):
                break  # another process has stored it


def rebuild() -> Iterator[State]:
    """Store the changes of all versions of all states again; yield each state.

    Raises:
        StorageUnavailable: the object store does not respond.
    """
    for state in State.objects.filter(version_number__gt=0).order_by("pk").iterator():
        receive(state=state)
        versions = StateVersion.objects.filter(state=state).order_by("number").only(*_COLUMNS)
        for version in versions.iterator():
            _record(state, version, moves=False)
        yield state


def _new_versions(state: State) -> list[StateVersion]:
    position = RecordedState.objects.filter(state=state).values("number")
    versions = StateVersion.objects.filter(state=state, number__gt=position).only(*_COLUMNS)
    return list(versions.order_by("number")[:_VERSIONS])


def _record(state: State, version: StateVersion, *, moves: bool) -> bool:
    """Replace the changes of a version; with ``moves``, only behind the state's position.

    Return whether the position was as expected.
    """
    changes, problem = _changes_of(state, version)
    rows = _rows(state, version, changes, problem)
    with transaction.atomic():
        position = RecordedState.objects.filter(state=state)
        if moves and not position.filter(number__lt=version.number).update(number=version.number):
            return False
        Change.objects.filter(version=version).delete()
        Change.objects.bulk_create(rows, batch_size=_ROWS)
    return True


def _changes_of(state: State, version: StateVersion) -> tuple[list[ResourceChange], str]:
    """Return the changes of a version, or the reason why they are unknown."""
    earlier = StateVersion.objects.filter(state=state, number__lt=version.number)
    before_id = earlier.order_by("-number").values_list("pk", flat=True).first()
    if before_id is None and version.number > 1:
        return [], PREDECESSOR_REMOVED
    try:
        before = None if before_id is None else reading.load(before_id)[1]
        changes = contents.changed_resources(before, reading.load(version.pk)[1])
    except StorageUnavailable:
        raise
    except (APIException, DocumentUnreadable) as error:
        return [], error.default_code
    except DatabaseFailure:
        raise
    except Exception:
        # It would stop the index of all other states in each pass.
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

    The first 12 random bits are the same, so that the changes of a version stay together among
    those of the same millisecond; the next bits count.
    """
    start = milliseconds_of(moment) << 80 | 0x7 << 76 | secrets.randbits(12) << 64
    for position in reversed(range(number)):
        yield uuid.UUID(int=start | 0x2 << 62 | position << 40 | secrets.randbits(40))
