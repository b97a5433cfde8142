"""Reject request text that is not UTF-8, with the position of the invalid character."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from rest_framework.exceptions import APIException

from filterlang.backend import PARAMETER, InvalidFilter
from filterlang.errors import Code, FilterError
from infra_service.lib.api.parameters import InvalidParameter

if TYPE_CHECKING:
    from django.http import HttpRequest

_SHOWN: Final = 64


class UnsupportedCharset(APIException):
    meaning = "The `Content-Type` specifies a charset other than UTF-8."
    status_code = 415
    default_code = "UNSUPPORTED_MEDIA_TYPE"

    def __init__(self, charset: str) -> None:
        super().__init__(
            f"The charset {charset[:_SHOWN]!a} of the Content-Type is not supported. Send UTF-8, "
            "with 'Content-Type: application/json'."
        )


def query_fault(request: HttpRequest) -> APIException | None:
    """Return an error for the first query parameter that is not UTF-8, or None.

    Django decodes invalid bytes to U+FFFD, so a filter could match the wrong rows.
    """
    query = request.META.get("QUERY_STRING", "")
    if query.isascii() and "%" not in query:
        return None
    raw = query.encode("latin-1", "replace").replace(b"+", b" ")
    for pair in raw.split(b"&"):
        name, _, value = map(unquote_to_bytes, pair.partition(b"="))
        for text in (name, value):
            try:
                text.decode()
            except UnicodeDecodeError as error:
                return _fault(name.decode(errors="backslashreplace"), text[: error.start])
    return None


def _fault(name: str, before: bytes) -> APIException:
    position = len(before.decode())
    if name == PARAMETER:
        message = "a byte that is not UTF-8 is not allowed in a filter"
        return InvalidFilter(FilterError(Code.CHARACTER, position, message))
    return InvalidParameter(
        name[:_SHOWN], f"Not valid UTF-8 at character {position}.", "INVALID_FORMAT"
    )
