"""Filters by a column with few values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib.admin import SimpleListFilter

if TYPE_CHECKING:
    from collections.abc import Sequence


class ChoiceFilter(SimpleListFilter):
    """A filter by one of the offered values of a column. An invalid choice matches no row."""

    column: ClassVar[str]
    #: Values with their labels.
    offered: ClassVar[Sequence[tuple[str, str]]]

    def lookups(self, *_args: Any) -> list[tuple[str, str]]:
        return list(self.offered)

    def queryset(self, _request: Any, queryset: Any) -> Any:
        value = self.value()
        if value is None:
            return queryset
        is_offered = value in dict(self.offered)
        return queryset.filter((self.column, value)) if is_offered else queryset.none()
