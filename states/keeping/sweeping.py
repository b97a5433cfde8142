"""Delete objects without a row. Writers that lose a race or crash leave them behind."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from infra_service.lib.api.identifiers import parse_uuid
from states.keeping import storage
from states.keeping.attempts import Attempts
from states.models import StateVersion

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Iterator


def directories() -> dict[str, uuid.UUID]:
    """Return the directories of states in the store, with the ids of the states.

    Raises:
        StorageUnavailable: the object store does not respond.
    """
    with storage.answering("list", ""):
        names, _files = storage.store().listdir("")
    return {name: state_id for name in names if (state_id := parse_uuid(name)) is not None}


def sweep(*, older_than: dt.timedelta, dry_run: bool) -> Iterator[str | None]:
    """Delete objects without a row, and yield their names.

    After each state, yield None, so that the caller can stop.

    Objects are listed before rows are read, so that the row of a new object is found. An old object
    without a row never gets a row, because a single request writes both. Only the clock of the
    store determines the age, because another clock could be wrong. Objects with other names do not
    belong to the service, and stay.

    Raises:
        StorageUnavailable: the object store does not respond.
        IncompleteError: some objects could not be deleted, and all others were deleted.
    """
    attempts = Attempts()
    written_before = storage.now() - older_than
    for directory, state_id in directories().items():
        unknown, _ = attempts.run(partial(_unknown, directory, state_id), directory=directory)
        for name in unknown or ():
            is_swept, _ = attempts.run(
                partial(_sweep, name, written_before, dry_run=dry_run), object=name
            )
            if is_swept:
                yield name
        yield None
    attempts.finish()


def _unknown(directory: str, state_id: uuid.UUID) -> list[str]:
    """Return the names of a state's objects without a row."""
    with storage.answering("list", directory):
        files = storage.store().listdir(directory)[1]
    versions = StateVersion.objects.filter(state_id=state_id)
    known = set(versions.values_list("object_name", flat=True))
    return sorted({f"{directory}/{file}" for file in files} - known)


def _sweep(name: str, before: dt.datetime, *, dry_run: bool) -> bool:
    """Delete an object if it is old enough, and return whether it is old enough."""
    try:
        is_old = storage.written_at(name) < before
    except storage.ObjectMissingError:
        return False
    if is_old and not dry_run:
        storage.delete(name)
    return is_old
