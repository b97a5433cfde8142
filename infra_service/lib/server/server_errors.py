"""Errors that the server returns before Django runs, in the format of the API."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import msgspec

# Messages of gunicorn are not used, because they quote the request, which may contain a token.
_REASONS: Final = {
    400: ("BAD_REQUEST", "The request is malformed."),
    403: ("PERMISSION_DENIED", "The request is not allowed."),
    408: ("REQUEST_TIMEOUT", "The request did not arrive in time."),
    414: ("URI_TOO_LONG", "The request line is longer than 8190 bytes."),
    417: ("EXPECTATION_UNSUPPORTED", "Only the 100-continue expectation is supported."),
    431: (
        "HEADERS_TOO_LARGE",
        "A header is longer than 8190 bytes, or the request has more than 100 headers.",
    ),
    501: ("TRANSFER_CODING_UNSUPPORTED", "Only the chunked transfer coding is supported."),
    503: (
        "MEMORY_UNAVAILABLE",
        "Other requests are using the memory that this request requires. Try again.",
    ),
}
_INTERNAL: Final = (
    "INTERNAL",
    "Internal error. The log contains the details under this request id.",
)


class StatusCapture:
    """A connection that captures gunicorn's error response instead of sending it."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.sent = b""

    def sendall(self, data: bytes) -> None:
        self.sent += data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def refusal(status: int, request_id: str) -> bytes:
    """Return a complete error response that closes the connection."""
    # Imported here, because the worker class is imported before Django's settings.
    from infra_service.lib.api.errors import error_body  # noqa: PLC0415

    reason, message = _REASONS.get(status, _INTERNAL)
    body = msgspec.json.encode(error_body(status, reason, message, request_id=request_id))
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "Connection: close",
        *(["Retry-After: 3"] if status == HTTPStatus.SERVICE_UNAVAILABLE else []),
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"X-Request-ID: {request_id}",
    )
    return "\r\n".join([*lines, "", ""]).encode() + body
