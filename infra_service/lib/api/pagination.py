"""Keyset pagination without OFFSET and COUNT: page 5,000 costs as much as page 1.

A view declares the order of its list in ``page_key``, and alternative orders in ``other_keys``
(``infra_service.lib.api.orders``). The columns are unique together, indexed, and all ascending or
all descending (``("-id",)``). ``resource_plural`` is the name of the list in the response.
``list_parameters`` are query parameters that the view reads in addition to its filters.
``infra_service.lib.database.bounded_pages`` limits the number of rows read.
"""

from __future__ import annotations

import base64
import datetime as dt
import functools
import hashlib
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeVar

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.crypto import salted_hmac
from rest_framework.exceptions import APIException
from rest_framework.pagination import BasePagination
from rest_framework.response import Response

from infra_service.lib.api import orders
from infra_service.lib.api.parameters import InvalidParameter, refuse_unknown
from infra_service.lib.api.rendering import ListReader
from infra_service.lib.database import replica
from infra_service.lib.database.bounded_pages import read_page
from infra_service.lib.database.bounded_pages.segments import (
    ranked_by,
    read_segments,
    with_nulls_last,
)
from infra_service.lib.database.keyset import columns_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from django.db.models import QuerySet
    from django.http import QueryDict
    from rest_framework.request import Request

    from infra_service.lib.database.bounded_pages.segments import Segment

R = TypeVar("R")

DEFAULT_PAGE_SIZE: Final = 50
MAX_PAGE_SIZE: Final = 100
TOKEN_AGE: Final = dt.timedelta(days=3)
#: The descriptions of the two fields of a page.
ITEMS: Final = "The items of this page, at most `page_size`, in the order of the list."
NEXT_PAGE: Final = "The `page_token` of the next page, or empty on the last page."
NextPageToken = Annotated[str, msgspec.Meta(description=NEXT_PAGE)]

_SALT: Final = "infra_service.page_token"
_SIZE: Final = "page_size"
_TOKEN: Final = "page_token"  # noqa: S105 - a parameter's name
_INTEGER: Final = re.compile(r"-?[0-9]{1,10}", re.ASCII)


class InvalidPageToken(APIException):
    meaning = "The page token is damaged, too old, or from another list or filter."
    status_code = 400
    default_code = "INVALID_PAGE_TOKEN"
    default_detail = (
        "The page_token is not valid for this list and filter, or is older than three "
        "days. Start again without a page_token."
    )


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A requested page: at most ``size`` items after ``position``. None means the first page."""

    size: int
    position: list[Any] | None
    scope: str

    @classmethod
    def read(
        cls, request: Request, view: Any, lengths: Collection[int], *others: str
    ) -> PageRequest:
        """Read the query parameters. ``others`` are additional valid parameters.

        ``lengths`` contains the valid lengths of a position.

        Raises:
            InvalidParameter, InvalidPageToken: see the classes.
        """
        parameters = request.query_params
        refuse_unknown(parameters, {*_known(view), *others})
        size = _page_size(parameters)
        scope = _scope(request.path, parameters, getattr(view, "page_scope", ""))
        token = parameters.get(_TOKEN)
        return cls(size, _position(token, scope, lengths) if token else None, scope)

    def token(self, *position: int | str) -> str:
        """Return the token of the page after this position."""
        return _cipher().encrypt(msgspec.json.encode([self.scope, *position])).decode()

    def page_by(self, column: str, rows: QuerySet[Any, R]) -> tuple[list[R], str]:
        """Return the page of rows ordered by a column, and the token of the next page."""
        ordered = rows.order_by(column)
        if self.position is not None:
            ordered = ordered.filter((f"{column}__gt", self.position[0]))
        found = list(ordered[: self.size + 1])
        if len(found) <= self.size:
            return found, ""
        page = found[: self.size]
        end: Any = page[-1]
        return page, self.token(str(end[column] if isinstance(end, dict) else getattr(end, column)))


class KeysetPagination(BasePagination):
    """Pagination by ``page_size`` and ``page_token``, until ``next_page_token`` is empty."""

    # The view of the list. infra_service.openapi.schema sets it for the OpenAPI description.
    view: Any = None
    #: Whether the list supports ``order_by``.
    takes_order: ClassVar[bool] = True

    def answer(self, queryset: QuerySet[Any, Any], request: Request, view: Any) -> Response:
        """Respond with a page of the list and the token of the next page.

        Raises:
            InvalidParameter, InvalidPageToken: see the classes.
        """
        key = orders.requested_key(request.query_params, view)
        segments = with_nulls_last(queryset.model, key)
        if len(segments) > 1:
            return _answer_in_segments(queryset, request, view, segments)
        columns, _descending = columns_of(key)
        page_request = PageRequest.read(request, view, {len(columns)}, orders.PARAMETER)
        reader = ListReader(view, columns)
        page = replica.read(
            lambda alias: read_page(
                queryset.using(alias),
                key=key,
                position=page_request.position,
                size=page_request.size,
                read=reader.read,
            )
        )
        token = "" if page.position is None else page_request.token(*page.position)
        return Response({view.resource_plural: reader.items(page.rows), "next_page_token": token})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a page. ``schema`` describes the list in the page."""
        return page_schema(self.view.resource_plural, schema)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:  # noqa: ARG002 - DRF's signature
        size = {
            "type": "integer",
            "format": "int32",
            "minimum": 0,
            "maximum": MAX_PAGE_SIZE,
            "default": DEFAULT_PAGE_SIZE,
        }
        described = {
            _SIZE: (
                f"Maximum items per page, up to {MAX_PAGE_SIZE}; 0 means {DEFAULT_PAGE_SIZE}.",
                size,
            ),
            _TOKEN: ("The `next_page_token` of the previous page.", {"type": "string"}),
        }
        return [
            {"name": n, "in": "query", "required": False, "description": text, "schema": schema}
            for n, (text, schema) in described.items()
        ]


class SegmentPagination(KeysetPagination):
    """Pagination of a list in ``segments`` that share the ``page_key``, in a single order."""

    takes_order = False

    def answer(self, queryset: QuerySet[Any, Any], request: Request, view: Any) -> Response:
        """Respond with a page of the list and the token of the next page.

        Raises:
            InvalidParameter, InvalidPageToken: see the classes.
        """
        return _answer_in_segments(queryset, request, view, view.segments)


def _answer_in_segments(
    queryset: QuerySet[Any, Any], request: Request, view: Any, segments: Sequence[Segment]
) -> Response:
    others = (orders.PARAMETER,) if view.paginator.takes_order else ()
    page_request = PageRequest.read(
        request, view, {1 + len(each.key) for each in segments}, *others
    )
    column = ranked_by(segments)

    def key_of(segment: Segment) -> list[str]:
        columns, _descending = columns_of(segment.key)
        return [*columns, column] if column else columns

    reader = ListReader(view, key_of(segments[0]))
    found = replica.read(
        lambda alias: read_segments(
            queryset.using(alias),
            segments=segments,
            position=page_request.position,
            size=page_request.size,
            reader_of=lambda segment: functools.partial(reader.read, key=key_of(segment)),
        )
    )
    token = "" if found.end is None else page_request.token(*found.end)
    return Response({view.resource_plural: reader.items(found.rows), "next_page_token": token})


def page_schema(name: str, items: dict[str, Any], **beside: Any) -> dict[str, Any]:
    """Return the schema of a page. ``beside`` are fields in addition to the list ``name``."""
    properties = {
        name: {**items, "description": ITEMS},
        **beside,
        "next_page_token": {"type": "string", "description": NEXT_PAGE},
    }
    return {
        "type": "object",
        "description": f"A page of {name.replace('_', ' ').replace('api', 'API')}.",
        "required": list(properties),
        "properties": properties,
    }


def _known(view: Any) -> set[str]:
    """Return the names of all parameters of the list."""
    known = {_SIZE, _TOKEN, *getattr(view, "list_parameters", ())}
    for backend in view.filter_backends:
        known |= {p["name"] for p in backend().get_schema_operation_parameters(view)}
    return known


def _page_size(parameters: QueryDict) -> int:
    text = parameters.get(_SIZE) or "0"
    if _INTEGER.fullmatch(text) is None or not 0 <= int(text) <= MAX_PAGE_SIZE:
        raise InvalidParameter(_SIZE, f"Not an integer from 0 to {MAX_PAGE_SIZE}.", "OUT_OF_RANGE")
    return int(text) or DEFAULT_PAGE_SIZE


def _scope(path: str, parameters: QueryDict, more: str) -> str:
    """Return a digest of the list and its filter, to which a page token is bound.

    ``more`` is a text from the view that represents other data on which the list depends.
    """
    kept = sorted((name, text) for name, text in parameters.items() if name not in (_SIZE, _TOKEN))
    given = [pair for pair in kept if str(pair[1]).strip()]
    text = repr((path.rstrip("/"), given, *filter(None, [more])))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _position(token: str, scope: str, lengths: Collection[int]) -> list[Any]:
    """Return the position in the token."""
    try:
        found, *rest = msgspec.json.decode(_cipher().decrypt(token))
    except (InvalidToken, ValueError, TypeError) as error:
        raise InvalidPageToken from error
    # Not decrypt's ttl, which also rejects a token from an instance whose clock is a minute ahead.
    age = time.time() - _cipher().extract_timestamp(token)
    if found != scope or len(rest) not in lengths or age > TOKEN_AGE.total_seconds():
        raise InvalidPageToken
    position: list[Any] = rest
    return position


def _cipher() -> MultiFernet:
    """Return the cipher of page tokens.

    Tokens are encrypted, because the position after a limited read can be a row that the caller
    must not see.
    """
    return _cipher_of(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


@functools.lru_cache
def _cipher_of(*secrets: str) -> MultiFernet:
    """Return a cipher with keys derived from these secrets. The first secret encrypts."""
    digests = (salted_hmac(_SALT, "", secret, algorithm="sha256").digest() for secret in secrets)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])
