"""Render responses as JSON, including list rows that PostgreSQL renders.

PostgreSQL renders each row of a list as JSON text, with an expression derived from the view's
serializer (``row_json``). Python only joins these texts. The serializer renders lists without such
an expression, and all lists on SQLite, where it reads ``values()`` if possible. The JSON is the
same in each case.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.db import connection
from django.utils.functional import Promise
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer

from infra_service.lib.api.row_json import derive, is_served, names_of, row_json
from infra_service.lib.database.bounded_pages.selecting import columns_sql, select

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rest_framework.request import Request

    from infra_service.lib.api.row_json import Parts
    from infra_service.lib.database.bounded_pages.selecting import Columns


_ANYTHING: Final = "*/*"


def _as_text(value: Any) -> str:
    """Convert Django's lazily translated text, and reject all other types.

    Raises:
        TypeError: the type has no JSON representation.
    """
    if isinstance(value, str | Promise):  # DRF's error details are a subclass of str
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON representation.")


class JsonRenderer(BaseRenderer):
    """A renderer of compact JSON in UTF-8."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,  # noqa: ARG002 - DRF's signature
        renderer_context: Mapping[str, Any] | None = None,  # noqa: ARG002 - DRF's signature
    ) -> bytes:
        """Return the body, which is empty for None."""
        return b"" if data is None else msgspec.json.encode(data, enc_hook=_as_text)


class ContentNegotiation(DefaultContentNegotiation):
    """Content negotiation that does not parse ``Accept: */*``, the header of most clients."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        if request.META.get("HTTP_ACCEPT", _ANYTHING) == _ANYTHING:
            first = next(iter(renderers))
            return first, str(first.media_type)
        selected: tuple[BaseRenderer, str]
        selected = super().select_renderer(request, renderers, format_suffix)
        return selected


class ListReader:
    """A reader of the rows of a list: as JSON text, as ``values()``, or as instances."""

    def __init__(self, view: Any, key: list[str]) -> None:
        self.written = False
        self._key = key
        self._view = view
        self._parts = derive(view.get_serializer_class())

    def read(
        self, queryset: Any, order: Sequence[str], limit: int, key: Sequence[str] = ()
    ) -> list[Any]:
        """Return the first rows of the queryset in this order, in the fastest available form.

        Rows with JSON text begin with the columns of ``key`` or, without ``key``, of the list's
        key.
        """
        # A queryset with the view's own values() is returned unchanged.
        parts = self._parts if queryset._fields is None else None
        if parts is not None and connection.vendor == "postgresql":
            if columns := self._columns(parts, queryset, tuple(key or self._key)):
                self.written = True
                return select(columns, queryset, order, limit)
        elif parts is not None and is_served(parts, queryset.query):
            queryset = queryset.values(*dict.fromkeys([*self._key, *names_of(parts)]))
        return list(queryset.order_by(*order)[:limit])

    def _columns(self, parts: Parts, queryset: Any, key: tuple[str, ...]) -> Columns | None:
        """Return the selected columns: the key, and the row as JSON text.

        The columns are compiled once per view if the view's ``queryset`` has the same annotations.
        """
        declared: Any = getattr(self._view, "queryset", None)
        if declared is not None and declared.query.annotations == queryset.query.annotations:
            return _declared_columns(self._view.__class__, parts, key)
        return _columns(queryset, parts, key)

    def items(self, rows: list[Any]) -> Any:
        """Return the rows in the form that ``JsonRenderer`` renders."""
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
