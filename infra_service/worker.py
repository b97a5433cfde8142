"""gunicorn's worker, which refuses in the project's error form what never reaches Django."""

from __future__ import annotations

import contextlib
from http import HTTPStatus
from typing import Any, Final

import msgspec
import structlog
from gunicorn.workers.gthread import ThreadWorker
from uuid_utils.compat import uuid7

# gunicorn's own messages quote the request, which may hold a token.
_REASONS: Final = {
    400: ("BAD_REQUEST", "The request is malformed."),
    403: ("PERMISSION_DENIED", "You may not do this."),
    414: ("URI_TOO_LONG", "The request line is longer than 8190 bytes."),
    417: ("EXPECTATION_UNSUPPORTED", "Nothing but 100-continue can be expected."),
    431: ("HEADERS_TOO_LARGE", "A header is longer than 8190 bytes, or there are over 100."),
    501: ("TRANSFER_CODING_UNSUPPORTED", "The only transfer coding is chunked."),
}
_INTERNAL: Final = ("INTERNAL", "An internal error; the log has it under this request id.")


class _Overheard:
    """A connection on which gunicorn says which status it has chosen, and sends nothing."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.said = b""

    def sendall(self, data: bytes) -> None:
        self.said += data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class RefusingWorker(ThreadWorker):  # type: ignore[misc,unused-ignore]
    """Threads, and errors in one form."""

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Any) -> None:
        """Log the error under an id, and answer it with the status that gunicorn chooses."""
        request_id = uuid7().hex
        overheard = _Overheard(client)
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            super().handle_error(req, overheard, addr, exc)
        if overheard.said:
            status = int(overheard.said.split(b" ", 2)[1])
            with contextlib.suppress(OSError):  # the client has gone
                client.sendall(_answer(status, request_id))


def _answer(status: int, request_id: str) -> bytes:
    # The worker class is imported before Django's settings are.
    from infra_service.api.errors import error_body  # noqa: PLC0415

    reason, message = _REASONS.get(status, _INTERNAL)
    body = msgspec.json.encode(error_body(status, reason, message, request_id=request_id))
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "Connection: close",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"X-Request-ID: {request_id}",
    )
    return "\r\n".join([*lines, "", ""]).encode() + body
