"""JSON:API documents (jsonapi.org 1.0): responses, errors, request bodies and numbered pages."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec
from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.response import Response

from infra_service.lib.api import bodies, errors
from infra_service.lib.api.duplicate_members import duplicate_member
from infra_service.lib.api.parameters import InvalidParameter
from infra_service.lib.api.parsers import has_nul
from infra_service.lib.api.rendering import JsonRenderer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rest_framework.request import Request

T = TypeVar("T")

MEDIA_TYPE: Final = "application/vnd.api+json"
#: The maximum number of rows that a list with numbered pages counts and skips.
MOST_LISTED: Final = 10_000
_MOST_ON_A_PAGE: Final = 100
_DEFAULT_PAGE: Final = 20
_POSITIVE: Final = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
#: Parameters of lists that do not filter. go-tfe repeats `filter[tagged]` under its Go name.
_COMMON: Final = ("include", "sort", "page[number]", "page[size]", "TagBindings")
#: Clients expect 409 for a locked workspace.
_STATUSES: Final = {HTTPStatus.LOCKED: HTTPStatus.CONFLICT}


class InvalidAttribute(APIException):
    meaning = "The body is not the expected JSON:API document, or a value in it is not supported."
    status_code = 422
    default_code = "INVALID_ATTRIBUTE"


class JsonApiRenderer(JsonRenderer):
    """A renderer of documents with the media type that the clients require."""

    media_type = MEDIA_TYPE


class Identifier(msgspec.Struct, omit_defaults=True):
    """A resource in a request. A related resource may have attributes."""

    type: str = ""
    id: str | None = None
    attributes: dict[str, Any] = {}


class Related(msgspec.Struct):
    """The resources of a relationship in a request."""

    data: list[Identifier] | Identifier | None = None

    @property
    def many(self) -> list[Identifier]:
        """Return the resources of a to-many relationship."""
        return self.data if isinstance(self.data, list) else []


class _Document(msgspec.Struct, Generic[T]):
    data: T


def resource(
    kind: str, id_: str, attributes: dict[str, Any], **relationships: dict[str, Any] | None
) -> dict[str, Any]:
    """Return a resource object. Underscores in names of relationships become hyphens."""
    related = {name.replace("_", "-"): {"data": data} for name, data in relationships.items()}
    return {"id": id_, "type": kind, "attributes": attributes, "relationships": related}


def linked(kind: str, id_: str) -> dict[str, Any]:
    """Return the identifier of a related resource."""
    return {"id": id_, "type": kind}


def page_of(items: Sequence[Any], *, number: int, size: int, total: int) -> dict[str, Any]:
    """Return a page of a list of ``total`` resources."""
    pages = max(1, -(-total // size))
    pagination = {
        "current-page": number,
        "page-size": size,
        "prev-page": number - 1 if number > 1 else None,
        "next-page": number + 1 if number < pages else None,
        "total-pages": pages,
        "total-count": total,
    }
    return {"data": items, "meta": {"pagination": pagination}}


def read_data(request: Request, data_type: type[T]) -> T:
    """Return the member ``data`` of the body.

    Raises:
        BodyTooLarge, BodyIncomplete: see ``bodies.blocks``.
        ParseError: the body is not JSON.
        InvalidAttribute: the body is not a document of this type.
    """
    body = bodies.read_body(request._request, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    return decoded_data(body, data_type)


def decoded_data(
    body: bytes | bytearray, data_type: type[T], *, allow_duplicates: bool = False
) -> T:
    """Return the member ``data`` of the document; see ``read_data``.

    ``allow_duplicates`` omits the search for duplicate members, which decodes a large body again.
    """
    document: Any = _Document
    try:
        content: T = msgspec.json.decode(body, type=document[data_type]).data
        duplicate = None if allow_duplicates else duplicate_member(body)
    except msgspec.ValidationError as error:
        raise InvalidAttribute(str(error)) from error
    except RecursionError as error:
        raise ParseError("The JSON is nested too deeply.") from error
    except ValueError as error:  # msgspec's error, or Python's for bytes that are not UTF-8
        raise ParseError(f"The body is not JSON: {error}") from error
    if has_nul(body):
        raise InvalidAttribute("A NUL character (\\u0000) is not allowed.")
    if duplicate is not None:
        raise InvalidAttribute(f"The member {duplicate[:64]!a} is repeated in an object.")
    return content


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Return the response to an exception as a JSON:API error document, for DRF."""
    response = errors.exception_handler(exc, context)
    if response is None:
        return None
    error = response.data["error"]
    info, *_, request_info = error["details"]
    response.status_code = _STATUSES.get(HTTPStatus(response.status_code), response.status_code)
    response.data = {
        "errors": [
            {
                "status": str(response.status_code),
                "code": info["reason"],
                "title": HTTPStatus(response.status_code).phrase,
                "detail": error["message"],
                "meta": {"request_id": request_info["request_id"]},
            }
        ]
    }
    context["request"].accepted_renderer = JsonApiRenderer()
    context["request"].accepted_media_type = MEDIA_TYPE
    return response


class Page:
    """A page of a list, requested by its number."""

    def __init__(self, request: Request, *known: str) -> None:
        """Read the parameters of the page. ``known`` are prefixes of additional valid parameters.

        Raises:
            InvalidParameter: a parameter is unknown or repeated, or a number is out of range.
        """
        for name, texts in request.query_params.lists():
            if name not in _COMMON and not name.startswith(known):
                raise InvalidParameter(name[:64], "The list does not support this parameter.")
            if len(texts) > 1:
                raise InvalidParameter(name[:64], "Given more than once.", "DUPLICATE")
            if "\0" in texts[0]:
                raise InvalidParameter(name[:64], "A NUL character is not allowed.")
        self.size = min(_number(request, "page[size]", _DEFAULT_PAGE), _MOST_ON_A_PAGE)
        self.number = _number(request, "page[number]", 1)

    def answer(self, rows: Any, describe: Callable[[Any], dict[str, Any]]) -> Response:
        """Respond with the page of a queryset, limited to its first ``MOST_LISTED`` rows."""
        total, start = rows.order_by()[:MOST_LISTED].count(), (self.number - 1) * self.size
        items = [describe(row) for row in rows[start : start + self.size]] if start < total else []
        return Response(page_of(items, number=self.number, size=self.size, total=total))


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name) or str(default)
    if not _POSITIVE.fullmatch(text):
        raise InvalidParameter(name, "The value must be an integer from 1 to 999999999.")
    return int(text)
