"""Reject query parameters that are unknown, repeated or not UTF-8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from rest_framework.exceptions import APIException

from infra_service.lib.api.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.http import HttpRequest, QueryDict

#: The number of characters of an invalid name in a message.
_SHOWN: Final = 64


class InvalidParameter(APIException):
    meaning = "A path or query parameter is unknown, repeated, out of range or malformed."
    status_code = 400
    default_code = "INVALID_FIELDS"

    def __init__(self, field: str, description: str, reason: str = "INVALID_FORMAT") -> None:
        super().__init__(f"{field}: {description}")
        self.field_violations = [{"field": field, "description": description, "reason": reason}]


def refuse_unknown(parameters: QueryDict, known: Collection[str]) -> None:
    """Reject unknown parameters. Ignoring a misspelt filter would return too many items.

    Raises:
        InvalidParameter: a parameter is unknown or repeated.
    """
    for name, values in parameters.lists():
        if name not in known:
            names = sorted(known)
            guess = did_you_mean(name, names) or f"; known parameters are {', '.join(names)}"
            raise InvalidParameter(name[:_SHOWN], f"Unknown parameter{guess}", "UNKNOWN_PARAMETER")
        if len(values) > 1:
            raise InvalidParameter(name, "Given more than once.", "DUPLICATE")


def encoding_fault(request: HttpRequest) -> APIException | None:
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
                return _not_utf8(name.decode(errors="backslashreplace"), text[: error.start])
    return None


def _not_utf8(name: str, before: bytes) -> APIException:
    # Imported here to keep the filter language out of commands that do not use it.
    from filterlang.backend import PARAMETER, InvalidFilter  # noqa: PLC0415
    from filterlang.errors import Code, FilterError  # noqa: PLC0415

    position = len(before.decode())
    if name == PARAMETER:
        message = "a byte that is not UTF-8 is not allowed in a filter"
        return InvalidFilter(FilterError(Code.CHARACTER, position, message))
    return InvalidParameter(
        name[:_SHOWN], f"Not valid UTF-8 at character {position}.", "INVALID_FORMAT"
    )
