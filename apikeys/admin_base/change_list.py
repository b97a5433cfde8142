"""A list that is never counted: a page reads one row more than it shows, and knows its neighbours.

``?after=`` and ``?before=`` name the row beside which the page begins, so page 5,000 of a million
rows costs what page 1 costs.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList
from django.core.exceptions import ValidationError
from django.utils.text import capfirst

from apikeys.keyset import beyond, columns_of, position_of, reversed_key
from apikeys.leading import is_selective, ordered, replanned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest

AFTER: Final = "after"
BEFORE: Final = "before"


class KeysetChangeList(ChangeList):
    """The list of an admin that says its ``page_key`` and ``page_columns``."""

    model_admin: Any  # a KeysetAdmin
    next_url: str | None
    previous_url: str | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = capfirst(str(self.opts.verbose_name_plural))

    @property
    def without_search_url(self) -> str:
        """The same filters without the search."""
        return self.get_query_string(remove=[SEARCH_VAR])

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> QuerySet[Any]:
        """Return the filtered rows; the position is no filter, and no link but ours keeps it."""
        for parameters in (self.params, self.filter_params):
            parameters.pop(AFTER, None)
            parameters.pop(BEFORE, None)
        return super().get_queryset(request, *args, **kwargs)

    def get_ordering(self, _request: HttpRequest, _queryset: QuerySet[Any]) -> list[Any]:
        """Return the one order that an index serves."""
        return list(self.model_admin.page_key)

    def get_results(self, request: HttpRequest) -> None:
        """Read the page, and one row more."""
        rows, has_previous, has_next = self._page(request)
        columns, _ = columns_of(self.model_admin.page_key)

        def link(name: str, row: Any) -> str:
            return self.get_query_string({name: json.dumps(position_of(row, columns))})

        self.next_url = link(AFTER, rows[-1]) if has_next else None
        self.previous_url = link(BEFORE, rows[0]) if has_previous and rows else None
        self.result_list = rows
        self.result_count = len(rows)
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = bool(rows)
        self.can_show_all = self.multi_page = False
        self.paginator = None

    def _page(self, request: HttpRequest) -> tuple[list[Any], bool, bool]:
        """Return the rows, and whether there are any before and after them."""
        name = next((n for n in (BEFORE, AFTER) if n in request.GET), None)
        key: Sequence[str] = self.model_admin.page_key
        columns: Sequence[str] = self.model_admin.page_columns
        if name == BEFORE:
            key, columns = reversed_key(key), reversed_key(columns)
        queryset = self.queryset
        selective = is_selective(queryset)
        if name is not None:
            queryset = queryset.filter(self._beyond(key, request.GET[name]))
        queryset = ordered(queryset, columns, key)
        with replanned() if selective else contextlib.nullcontext():
            rows = list(queryset[: self.list_per_page + 1])
        more = len(rows) > self.list_per_page
        del rows[self.list_per_page :]
        if name == BEFORE:
            rows.reverse()
            return rows, more, bool(rows)
        return rows, name is not None, more

    def _beyond(self, key: Sequence[str], text: str) -> Any:
        try:
            position = json.loads(text)
            if not isinstance(position, list) or "\0" in "".join(map(str, position)):
                raise IncorrectLookupParameters
            return beyond(key, position, self.queryset)
        except (ValueError, ValidationError) as error:
            raise IncorrectLookupParameters from error
