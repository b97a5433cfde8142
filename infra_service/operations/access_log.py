"""The access event and the metrics of each request."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import structlog

from infra_service.operations import metrics, tracing

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse
    from django.urls import ResolverMatch

log = structlog.get_logger("infra_service.access")

# The path parameters that appear in the event.
_IDS: Final[tuple[str, ...]] = ("component_id", "environment_id", "state_id", "cluster_id")


class Queries:
    """A wrapper that counts and times the database statements of a request.

    The time includes waits in the database, but excludes COMMIT and waits for the connection pool.
    """

    __slots__ = ("count", "seconds")

    def __init__(self) -> None:
        self.count, self.seconds = 0, 0.0

    def __call__(
        self,
        execute: Callable[..., Any],
        sql: str,
        params: Any,
        many: bool,  # noqa: FBT001 - Django's signature
        context: Any,
    ) -> Any:
        self.count += 1
        started = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            self.seconds += time.perf_counter() - started


def record(request: HttpRequest, response: HttpResponse, seconds: float, queries: Queries) -> None:
    """Write the access event of a request, and update the metrics.

    The event omits the query and the headers, because they can contain a lock id or a token.
    """
    match = request.resolver_match
    view = metrics.NO_VIEW if match is None else match.view_name
    request.META[tracing.VIEW] = view
    reason = getattr(request, "error_reason", None)
    metrics.observe(view, str(request.method), response.status_code, seconds, reason)
    event = {
        "method": request.method,
        "path": request.path,
        "view": view,
        "status": response.status_code,
        "duration_ms": round(seconds * 1000, 2),
        "queries": queries.count,
        "database_ms": round(queries.seconds * 1000, 2),
        "address": request.META.get("REMOTE_ADDR"),
    }
    if "HTTP_TRANSFER_ENCODING" not in request.META:
        event["bytes_in"] = int(request.META.get("CONTENT_LENGTH") or 0)
    if not response.streaming:
        event["bytes_out"] = len(response.content)
    if match is not None and match.kwargs:
        event.update(_ids(match))
    if caller := getattr(request, "auth", None):
        event["token_id"] = caller.token_id
        event["user"] = caller.username
    if reason:
        event["reason"] = reason
    log.info("request", **event)


def _ids(match: ResolverMatch) -> dict[str, str]:
    """Return the ids in the path. The name of ``id`` becomes, for example, ``state_id``."""
    ids: dict[str, str] = {name: match.kwargs[name] for name in _IDS if name in match.kwargs}
    if "id" in match.kwargs:
        resource = getattr(getattr(match.func, "cls", None), "resource", "resource")
        ids[f"{resource}_id"] = match.kwargs["id"]
    return ids
