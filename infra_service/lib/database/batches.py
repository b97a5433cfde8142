"""Read a table in batches. No statement stays open while a batch is processed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from django.db.models import Model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

M = TypeVar("M", bound=Model)

_SIZE: Final = 200


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
