"""Text filters: inputs in the search form, for columns with too many choices."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib.admin import SimpleListFilter

from infra_service.lib.api.identifiers import parse_uuid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest


class InputFilter(SimpleListFilter):
    """A filter by typed text. A subclass applies the text in ``typed``."""

    is_input: ClassVar[bool] = True
    input_type: ClassVar[str] = "text"

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self.suggestions: Sequence[str] = self.suggested(request)

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        return []

    def has_output(self) -> bool:
        """Return True, so that the filter is always shown."""
        return True

    def suggested(self, request: HttpRequest) -> Sequence[str]:
        """Return suggestions for the input field."""
        del request
        return ()

    @property
    def text(self) -> str:
        """The typed text."""
        return str(self.value() or "").strip()

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """Return the matching rows. Databases reject a NUL, so text with a NUL matches no row."""
        if not self.text:
            return queryset
        return queryset.none() if "\0" in self.text else self.typed(queryset, self.text, request)

    def typed(self, queryset: Any, text: str, request: HttpRequest) -> Any:
        """Return the rows that match the text."""
        raise NotImplementedError


class IdFilter(InputFilter):
    """A filter by a UUID. Other text matches no row."""

    column: ClassVar[str]

    def typed(self, queryset: Any, text: str, request: HttpRequest) -> Any:
        del request
        id_ = parse_uuid(text)
        return queryset.none() if id_ is None else queryset.filter(**{self.column: id_})


class DateFilter(InputFilter):
    """A filter by a day in UTC. An invalid day matches no row."""

    input_type = "date"

    def typed(self, queryset: Any, text: str, request: HttpRequest) -> Any:
        del request
        try:
            day = dt.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=dt.UTC)
            return self.of_day(queryset, day)
        except (ValueError, OverflowError):
            return queryset.none()

    def of_day(self, queryset: Any, day: dt.datetime) -> Any:
        """Return the rows that match the day that begins at ``day``."""
        raise NotImplementedError
