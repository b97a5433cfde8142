"""``Connection: close`` in a response to a large body that nobody reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra_service.lib.server.arrivals import LARGEST_BODY

if TYPE_CHECKING:
    from collections.abc import Callable


def announce_end(application: Callable[..., Any]) -> Callable[..., Any]:
    """Return the application, whose responses announce the end of their connection.

    The worker does not wait for the rest of a rejected body, and closes the connection. A client
    that expects it to stay open would send the next request into it (RFC 9112 §9.6).
    """

    def run(environ: dict[str, Any], start_response: Any) -> Any:
        if int(environ.get("CONTENT_LENGTH") or 0) <= LARGEST_BODY:  # received before the thread
            return application(environ, start_response)
        response = start_response.__self__

        def start(*status_and_headers: Any) -> Any:
            if response.req.body.reader.length:
                response.force_close()
            return start_response(*status_and_headers)

        return application(environ, start)

    return run
