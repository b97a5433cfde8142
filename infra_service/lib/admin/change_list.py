"""A change list with keyset pagination, without COUNT.

``?after=`` and ``?before=`` contain the position of the page, so page 5,000 of a million rows costs
as much as page 1. A page reads one extra row to detect the next page.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList
from django.core.exceptions import ValidationError
from django.utils.text import capfirst

from infra_service.lib.database.bounded_pages.segments import read_segments
from infra_service.lib.database.keyset import reversed_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest

    from infra_service.lib.database.bounded_pages.segments import Segment

AFTER: Final = "after"
BEFORE: Final = "before"
ORDER: Final = "order"
CSV: Final = "csv"
# Databases reject NUL and unpaired surrogates.
_NO_TEXT: Final = re.compile("[\0\ud800-\udfff]")


class KeysetChangeList(ChangeList):
    """The change list of an admin that declares a ``page_key``."""

    model_admin: Any  # a KeysetAdmin
    next_url: str | None
    previous_url: str | None
    #: Whether more rows may follow although the page is not full.
    stopped_early: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = capfirst(str(self.opts.verbose_name_plural))

    @property
    def without_search_url(self) -> str:
        """The link to the list with the same filters, but without the search."""
        return self.get_query_string(remove=[SEARCH_VAR])

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> QuerySet[Any]:
        """Return the filtered rows.

        The position and the order are not filters. Links keep the order and drop the position.
        """
        for parameters in (self.params, self.filter_params):
            for name in (AFTER, BEFORE, CSV):
                parameters.pop(name, None)
        order = self.filter_params.pop(ORDER, None)
        found = super().get_queryset(request, *args, **kwargs)
        if order is not None:
            self.filter_params[ORDER] = order
        return found

    def get_ordering(self, _request: HttpRequest, _queryset: QuerySet[Any]) -> list[Any]:
        """Return the page key, which has an index."""
        return list(self.page_key)

    @property
    def page_key(self) -> Sequence[str]:
        """The requested order, or the order of the admin if the request has no valid order."""
        order = self.order
        key: Sequence[str] | None = self.model_admin.orders.get(order.removeprefix("-"))
        if key is None:
            return list(self.model_admin.page_key)
        return reversed_key(key) if order.startswith("-") else key

    @property
    def order(self) -> str:
        """The name of the requested column, with the prefix ``-`` for a descending order.

        Without a requested order, a search or a filter, the order is the admin's ``opening_order``.
        """
        if {*self.params} - {AFTER, BEFORE, CSV}:
            return str(self.params.get(ORDER, ""))
        opening: str = self.model_admin.opening_order
        return opening

    def order_link(self, column: str) -> dict[str, str | None] | None:
        """Return the sort state of a column and the link to change it; None if not sortable."""
        if column not in self.model_admin.orders:
            return None
        order = self.order
        is_sorted = order.removeprefix("-") == column
        descending = order.startswith("-")
        following = column if is_sorted and descending else f"-{column}"
        if is_sorted and not descending:
            return {"url": self.get_query_string({ORDER: following}), "sorted": "ascending"}
        direction = "descending" if is_sorted else None
        return {"url": self.get_query_string({ORDER: following}), "sorted": direction}

    @property
    def input_names(self) -> set[str]:
        """The names of the text filters in the search form."""
        specs: list[Any] = self.filter_specs
        return {spec.parameter_name for spec in specs if hasattr(spec, "is_input")}

    @property
    def csv_url(self) -> str:
        """The link to the list as CSV."""
        return self.get_query_string({CSV: "1"})

    def get_results(self, request: HttpRequest) -> None:
        """Read the page and the positions of adjacent pages. A CSV export reads its own rows."""
        if CSV in request.GET:
            self.show_results([])
            return
        rows, before, after = self._page(request)
        self.model_admin.prepare_page(request, rows)
        self.show_results(rows, before, after)

    def show_results(self, rows: list[Any], before: Any = None, after: Any = None) -> None:
        """Show these rows, with links to the pages at the positions."""

        def link(name: str, position: Any) -> str | None:
            return position and self.get_query_string({name: json.dumps(position)})

        self.next_url, self.previous_url = link(AFTER, after), link(BEFORE, before)
        self.result_list = rows
        self.result_count = len(rows)
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = bool(rows)
        self.can_show_all = self.multi_page = False
        self.paginator = None

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments of the list, in order."""
        segments: Sequence[Segment] = self.model_admin.segments(self.page_key, self.params)
        return segments

    def _page(self, request: HttpRequest) -> tuple[list[Any], Any, Any]:
        """Return the rows, and the positions of the previous and next pages (or None)."""
        name = next((n for n in (BEFORE, AFTER) if n in request.GET), None)
        position = None if name is None else _read_position(request.GET[name])
        try:
            rows, start, end = read_segments(
                self.queryset,
                segments=self.segments,
                position=position,
                size=self.list_per_page,
                backwards=name == BEFORE,
            )
        except (ValidationError, OverflowError) as error:  # numbers beyond SQLite's integers
            raise IncorrectLookupParameters from error
        self.stopped_early = end is not None and len(rows) < self.list_per_page
        if name == BEFORE:
            rows.reverse()
            return rows, end, start or position
        return rows, (start or position) if name == AFTER else None, end


def _read_position(text: str) -> list[int | str]:
    try:
        position = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise IncorrectLookupParameters from error
    if (
        not isinstance(position, list)
        or not position
        or not all(isinstance(value, int | str) for value in position)
        or _NO_TEXT.search("".join(map(str, position)))
    ):
        raise IncorrectLookupParameters
    return position
