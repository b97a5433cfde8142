"""Read or delete rows in batches. No statement stays open while a batch is processed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.db.models import Model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

M = TypeVar("M", bound=Model)

_SIZE: Final = 200
#: Rows deleted per transaction, during which every other writer on SQLite waits. A batch may be
#: larger, because it includes all rows with its last value.
REMOVED: Final = 500


def batches_of(queryset: QuerySet[M], size: int = _SIZE) -> Iterator[list[M]]:
    """Yield lists of rows ordered by primary key. Each list is read when it is requested."""
    batch = list(queryset.order_by("pk")[:size])
    while batch:
        last = batch[-1].pk  # read now, because a deleted instance loses its key
        yield batch
        batch = list(queryset.filter(pk__gt=last).order_by("pk")[:size])


def in_batches(queryset: QuerySet[M]) -> Iterator[M]:
    """Yield the rows of ``batches_of`` one by one."""
    for batch in batches_of(queryset):
        yield from batch


def remove_in_batches(old: QuerySet[Any], column: str) -> Iterator[int]:
    """Delete rows in the order of this indexed column, and yield the size of each batch.

    The deletion can be interrupted and repeated at any time.
    """
    rest = old
    while values := list(rest.order_by(column).values_list(column, flat=True)[:REMOVED]):
        yield rest.filter((f"{column}__lte", values[-1])).delete()[0]
        # Deleted rows stay in the index for a while. Do not scan them again.
        rest = old.filter((f"{column}__gt", values[-1]))
