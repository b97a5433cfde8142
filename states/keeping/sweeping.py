"""Objects without a row: their writer lost a race or crashed before it wrote the row."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.utils import timezone

from infra_service.lib.api.identifiers import parse_uuid
from states.keeping import storage
from states.keeping.attempts import Attempts
from states.models import StateVersion

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Iterator


def directories() -> dict[str, uuid.UUID]:
    """Map the store's directories that belong to states to the ids of the states.

    Raises:
        StorageUnavailable: the object store does not respond.
    """
    with storage.answering("list", ""):
        names, _files = storage.store().listdir("")
    return {name: state_id for name in names if (state_id := parse_uuid(name)) is not None}


def sweep(*, older_than: dt.timedelta, dry_run: bool) -> Iterator[str | None]:
    """Delete objects without a row; yield the name of each.

    After each state it yields None, so that the caller may stop there.

    Names are listed before rows are read, so that rows written meanwhile are seen. An old object
    without a row never gets a row, because a request writes both together. Objects with other names
    are foreign, and stay.

    Raises:
        StorageUnavailable: the object store does not respond.
        IncompleteError: some objects could not be swept; all others were.
    """
    attempts = Attempts()
    for directory, state_id in directories().items():
        unknown, _ = attempts.run(partial(_unknown, directory, state_id), directory=directory)
        for name in unknown or ():
            is_swept, _ = attempts.run(
                partial(_sweep, name, older_than, dry_run=dry_run), object=name
            )
            if is_swept:
                yield name
        yield None
    attempts.finish()


def _unknown(directory: str, state_id: uuid.UUID) -> list[str]:
    """Return the objects of a state without a row."""
    with storage.answering("list", directory):
        files = storage.store().listdir(directory)[1]
    versions = StateVersion.objects.filter(state_id=state_id)
    known = set(versions.values_list("object_name", flat=True))
    return sorted({f"{directory}/{file}" for file in files} - known)


def _sweep(name: str, older_than: dt.timedelta, *, dry_run: bool) -> bool:
    """Delete an object if it is old enough; return whether it is."""
    is_older = _is_older(name, older_than)
    if is_older and not dry_run:
        storage.discard(name)
    return is_older


def _is_older(name: str, age: dt.timedelta) -> bool:
    try:
        with storage.answering("head", name):
            written = storage.store().get_modified_time(name)
    except storage.ObjectMissingError:
        return False
    return timezone.now() - written > age
