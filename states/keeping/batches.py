"""Reading a whole table bit by bit, so that nothing is held open while each bit is worked on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from django.db.models import Model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

M = TypeVar("M", bound=Model)

_SIZE: Final = 200


def in_batches(queryset: QuerySet[M]) -> Iterator[M]:
    """Yield the rows in the order of their key, as they are when their batch is read."""
    page = list(queryset.order_by("pk")[:_SIZE])
    while page:
        yield from page
        page = list(queryset.filter(pk__gt=page[-1].pk).order_by("pk")[:_SIZE])
