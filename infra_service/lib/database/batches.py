"""Read a table in batches, without an open statement while a batch is processed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from django.db.models import Model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

M = TypeVar("M", bound=Model)

_SIZE: Final = 200


def batches_of(queryset: QuerySet[M], size: int = _SIZE) -> Iterator[list[M]]:
    """Yield the rows in lists, in the order of their key, as they are when their list is read."""
    batch = list(queryset.order_by("pk")[:size])
    while batch:
        last = batch[-1].pk  # a deleted instance has none
        yield batch
        batch = list(queryset.filter(pk__gt=last).order_by("pk")[:size])


def in_batches(queryset: QuerySet[M]) -> Iterator[M]:
    """Yield the same rows one by one."""
    for batch in batches_of(queryset):
        yield from batch
