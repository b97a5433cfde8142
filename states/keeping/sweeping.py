"""Objects that no row points at: their writer lost a race or died before it wrote the row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from infra_service.api.identifiers import parse_uuid
from states.keeping import storage
from states.models import StateVersion

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Iterator


def directories() -> dict[str, uuid.UUID]:
    """Return the directories of the store that are of states, with the ids of those.

    Raises:
        StorageUnavailable: the object store does not answer.
    """
    with storage.answering("list", ""):
        names, _files = storage.store().listdir("")
    return {name: state_id for name in names if (state_id := parse_uuid(name)) is not None}


def sweep(*, older_than: dt.timedelta, dry_run: bool) -> Iterator[str | None]:
    """Delete the objects that no row points at, and yield the name of each.

    After each state it yields None, so that the caller may stop there.

    Names are listed before rows are read, so that a row that was written meanwhile is seen. A
    request writes an object and its row, or never the row: an old object without one stays without.
    Objects whose names have another form are not ours, and stay.

    Raises:
        StorageUnavailable: the object store does not answer.
    """
    for directory, state_id in directories().items():
        with storage.answering("list", directory):
            files = storage.store().listdir(directory)[1]
        versions = StateVersion.objects.filter(state_id=state_id)
        known = set(versions.values_list("object_name", flat=True))
        for name in sorted({f"{directory}/{file}" for file in files} - known):
            if _is_older(name, older_than):
                if not dry_run:
                    storage.discard(name)
                yield name
        yield None


def _is_older(name: str, age: dt.timedelta) -> bool:
    try:
        with storage.answering("head", name):
            written = storage.store().get_modified_time(name)
    except storage.ObjectMissingError:
        return False
    return timezone.now() - written > age
