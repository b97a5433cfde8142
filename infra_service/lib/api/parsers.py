"""Parse JSON bodies strictly. Every invalid body causes a 400, not a 500."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.http import UnreadablePostError
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from infra_service.lib.api.duplicate_members import duplicate_member

if TYPE_CHECKING:
    from collections.abc import Mapping

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


class JsonParser(BaseParser):
    """A parser of strict JSON (RFC 8259) in UTF-8, without NUL, which PostgreSQL cannot store.

    Django's ``DATA_UPLOAD_MAX_MEMORY_SIZE`` limits the size of the body.
    """

    media_type = "application/json"

    def parse(
        self,
        stream: Any,  # noqa: ARG002 - DRF's signature
        media_type: str | None = None,  # noqa: ARG002 - DRF's signature
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the decoded body.

        Raises:
            ParseError: the JSON is invalid. The error contains the position.
            RequestDataTooBig: the body exceeds the limit.
        """
        request = (parser_context or {})["request"]
        try:
            body: bytes = request._request.body
        except UnreadablePostError as error:
            raise ParseError("The connection closed before the body was complete.") from error
        return decoded(body)


def decoded(body: bytes) -> Any:
    """Return the decoded JSON.

    Raises:
        ParseError: the JSON is invalid. The error contains the position.
    """
    try:
        value = msgspec.json.decode(body)
        duplicate = duplicate_member(body) if isinstance(value, dict | list) else None
    except RecursionError as error:
        raise ParseError("The JSON is nested too deeply.") from error
    except ValueError as error:  # msgspec's error, or Python's for bytes that are not UTF-8
        raise ParseError(f"The body is not JSON: {error}") from error
    if has_nul(body):
        raise ParseError("A NUL character (\\u0000) is not allowed.")
    if duplicate is not None:
        raise ParseError(f"The member {duplicate[:_SHOWN]!a} is repeated in an object.")
    return value


def has_nul(body: bytes | bytearray) -> bool:
    """Return whether a string in valid JSON contains an escaped NUL."""
    # An escaped backslash before u0000 is not a NUL. JSON escapes are read from the left, too.
    return b"\\u0000" in body and b"\\u0000" in body.replace(b"\\\\", b"")
