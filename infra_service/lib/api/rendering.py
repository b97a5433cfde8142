"""JSON out: one renderer for every answer, and lists whose rows PostgreSQL writes itself.

The rows of such a list pass through Python untouched: the database writes each as JSON text, by an
expression that is derived from the view's serializer (``row_json``), and the page is those texts
put together. Any list of which none can be derived goes the ordinary way, from instances through
the serializer; on SQLite the others do too, but from ``values()``. The JSON is the same.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import msgspec
from django.db import connection
from django.utils.functional import Promise
from rest_framework.renderers import BaseRenderer

from infra_service.lib.api.row_json import derive, is_served, names_of, row_json
from infra_service.lib.database.bounded_pages.selecting import columns_sql, select

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra_service.lib.api.row_json import Parts
    from infra_service.lib.database.bounded_pages.selecting import Columns


def _as_text(value: Any) -> str:
    """Return a sentence that Django translates late as text; nothing else is text by accident.

    Raises:
        TypeError: no rule says how the value is written.
    """
    if isinstance(value, str | Promise):  # DRF's errors are a kind of text
        return str(value)
    raise TypeError(f"No rule says how {type(value).__name__} is written.")


class JsonRenderer(BaseRenderer):
    """Compact JSON in UTF-8."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,  # noqa: ARG002 - DRF's signature
        renderer_context: Mapping[str, Any] | None = None,  # noqa: ARG002 - DRF's signature
    ) -> bytes:
        """Return the body; none is empty."""
        return b"" if data is None else msgspec.json.encode(data, enc_hook=_as_text)


class ListReader:
    """How the rows of one list are read: as text, as ``values()``, or as instances."""

    def __init__(self, view: Any, key: list[str]) -> None:
        self.written = False
        self._key = key
        self._view = view
        self._parts = derive(view.get_serializer_class())

    def read(self, queryset: Any, order: Sequence[str], limit: int) -> list[Any]:
        """Return the first rows of the queryset in this order, read in the best of the ways."""
        # A view that asked for values() itself gets those.
        parts = self._parts if queryset._fields is None else None
        if parts is not None and connection.vendor == "postgresql":
            if columns := self._columns(parts, queryset):
                self.written = True
                return select(columns, queryset, order, limit)
        elif parts is not None and is_served(parts, queryset.query):
            queryset = queryset.values(*dict.fromkeys([*self._key, *names_of(parts)]))
        return list(queryset.order_by(*order)[:limit])

    def _columns(self, parts: Parts, queryset: Any) -> Columns | None:
        """Return what is selected: the key, and the row as JSON.

        It is compiled once where the view's ``queryset`` has all annotations that are shown.
        """
        declared: Any = getattr(self._view, "queryset", None)
        if declared is not None and declared.query.annotations == queryset.query.annotations:
            return _declared_columns(self._view.__class__, parts, tuple(self._key))
        return _columns(queryset, parts, self._key)

    def items(self, rows: list[Any]) -> Any:
        """Return the rows as parts of an answer, for ``JsonRenderer``."""
        if self.written:
            return [msgspec.Raw(row[-1]) for row in rows]
        return self._view.get_serializer(rows, many=True).data


@functools.cache
def _declared_columns(view: Any, parts: Parts, key: tuple[str, ...]) -> Columns | None:
    return _columns(view.queryset, parts, key)


def _columns(queryset: Any, parts: Parts, key: Sequence[str]) -> Columns | None:
    if not is_served(parts, queryset.query):
        return None
    written = row_json(parts, queryset.query)
    return written._replace(sql=", ".join([*columns_sql(queryset.model, key), written.sql]))
