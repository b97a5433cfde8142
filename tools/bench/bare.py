"""The service with a URL that bypasses the application, to measure the limit of the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from infra_service.wsgi import application as service
from tools.bench.limits import BARE


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Respond immediately to ``BARE``, or pass the request to the service."""
    if environ["PATH_INFO"] != BARE:
        answer: Iterable[bytes] = service(environ, start_response)
        return answer
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]
