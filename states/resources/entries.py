"""Write the rows of a state's resources in the resource index."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from states.models import ResourceDigest, ResourceEntry, State
from states.resources.extraction import COLUMNS, Found

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

#: Maximum rows per statement.
_ROWS: Final = 500


def write_entries(state: State, found: Sequence[Found]) -> None:
    """Replace the rows of the state in the resource index. Unchanged rows stay."""
    present = _present(state)
    new = []
    for one in found:
        if same := present.get(one):
            same.pop()
        else:
            new.append(one)
    stale = list(chain.from_iterable(present.values()))
    for start in range(0, len(stale), _ROWS):
        ids = stale[start : start + _ROWS]
        ResourceDigest.objects.filter(entry_id__in=ids).delete()
        ResourceEntry.objects.filter(pk__in=ids).delete()
    for start in range(0, len(new), _ROWS):
        _add(state, new[start : start + _ROWS])


def _present(state: State) -> dict[Found, list[uuid.UUID]]:
    """Return the ids of the state's rows by content. A document can contain duplicates."""
    digests: dict[uuid.UUID, set[uuid.UUID]] = defaultdict(set)
    of_state = ResourceDigest.objects.filter(entry__state_id=state.pk)
    for entry_id, digest in of_state.values_list("entry_id", "digest"):
        digests[entry_id].add(digest)
    present: dict[Found, list[uuid.UUID]] = defaultdict(list)
    entries: Any = ResourceEntry.objects.filter(state=state).values_list("pk", *COLUMNS)
    for pk, *columns in entries:
        present[Found._make([*columns, frozenset(digests[pk])])].append(pk)
    return present


def _add(state: State, found: Sequence[Found]) -> None:
    entries = [
        ResourceEntry(
            state=state,
            component_id=state.component_id,
            environment_id=state.environment_id,
            **{name: getattr(one, name) for name in COLUMNS},
        )
        for one in found
    ]
    ResourceEntry.objects.bulk_create(entries)
    ResourceDigest.objects.bulk_create(
        [
            ResourceDigest(entry=entry, digest=digest)
            for entry, one in zip(entries, found, strict=True)
            for digest in sorted(one.digests)
        ],
        batch_size=_ROWS,
    )
