"""Read the body of a request within a limit, or raise an error.

Django's ``request.body`` does not support chunked bodies or detect truncated bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gunicorn.http.errors import ParseException
from rest_framework.exceptions import APIException

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest

_BLOCK: Final = 256 * 1024


class BodyIncomplete(APIException):
    meaning = "The connection closed before the body was complete."
    status_code = 400
    default_code = "BODY_INCOMPLETE"
    default_detail = (
        "The body is shorter than its Content-Length, or its chunks are damaged. Send the request "
        "again."
    )


class RequestTimeout(APIException):
    meaning = "The body arrived too slowly or did not arrive."
    status_code = 408
    default_code = "REQUEST_TIMEOUT"
    default_detail = "The body did not arrive in time. Send the request again."


class LengthRequired(APIException):
    meaning = "The request has no Content-Length, which this endpoint requires."
    status_code = 411
    default_code = "LENGTH_REQUIRED"
    default_detail = "Send the body with a Content-Length."


class BodyTooLarge(APIException):
    meaning = "The body exceeds the size limit."
    status_code = 413
    default_code = "REQUEST_TOO_LARGE"

    def __init__(self, limit: int) -> None:
        super().__init__(f"The body is larger than {limit} bytes.")
        self.metadata = {"limit_bytes": str(limit)}


def read_body(request: HttpRequest, limit: int) -> bytes:
    """Return the complete body. Raise the same errors as ``blocks``."""
    return b"".join(blocks(request, limit))


def blocks(request: HttpRequest, limit: int) -> Iterator[bytes]:
    """Yield the blocks of a body with a Content-Length or of a chunked body.

    Raises:
        BodyTooLarge: the body exceeds ``limit`` bytes. A Content-Length is checked before
            reading.
        BodyIncomplete: the client disconnected, or the chunks are invalid.
        RequestTimeout: the client is slower than the minimum pace
            (``infra_service.lib.server.pace``).
    """
    chunked = "HTTP_TRANSFER_ENCODING" in request.META
    length = None if chunked else int(request.META.get("CONTENT_LENGTH") or 0)
    if length is not None and length > limit:
        raise BodyTooLarge(limit)
    # Django treats a body without a Content-Length as empty. The server detects the end of a
    # chunked body.
    stream = request.META["wsgi.input"] if chunked else request
    received = 0
    try:
        while block := stream.read(_BLOCK):
            received += len(block)
            if received > limit:
                raise BodyTooLarge(limit)
            yield block
    except (OSError, ParseException) as error:
        if isinstance(error, TimeoutError) or isinstance(error.__cause__, TimeoutError):
            raise RequestTimeout from error
        raise BodyIncomplete from error
    if length is not None and received != length:
        raise BodyIncomplete
