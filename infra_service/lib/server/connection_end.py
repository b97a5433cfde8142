"""Announce the end of a connection in the response to a large, unread body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gunicorn.http.body import ChunkedReader

from infra_service.lib.server.arrivals import LARGEST_BODY

if TYPE_CHECKING:
    from collections.abc import Callable

    from gunicorn.http.body import LengthReader


def announce_end(application: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the application to send ``Connection: close`` if a part of a body is unread.

    The worker does not wait for the rest of a rejected body, but closes the connection. Without
    this header, a client would send the next request on the same connection (RFC 9112 §9.6).
    """

    def run(environ: dict[str, Any], start_response: Any) -> Any:
        is_chunked = "HTTP_TRANSFER_ENCODING" in environ
        if not is_chunked and int(environ.get("CONTENT_LENGTH") or 0) <= LARGEST_BODY:
            return application(
                environ, start_response
            )  # the body was received before the thread started
        response = start_response.__self__

        def start(*status_and_headers: Any) -> Any:
            if _is_unread(response.req.body.reader):
                response.force_close()
            return start_response(*status_and_headers)

        return application(environ, start)

    return run


def _is_unread(reader: LengthReader | ChunkedReader) -> bool:
    """Return whether a part of the body, or the end of a chunked body, is unread."""
    return reader.parser is not None if isinstance(reader, ChunkedReader) else reader.length > 0
