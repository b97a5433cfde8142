"""Django's error handlers, which return errors outside views in the error format."""

from __future__ import annotations

import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.contrib import admin
from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from rest_framework.exceptions import APIException

from infra_service.lib.api.errors import database_failure, error_body, reason_of, too_large
from infra_service.lib.api.similar_paths import similar_path
from infra_service.lib.api.uploads import FileRefused

if TYPE_CHECKING:
    from infra_service.lib.database.failures import DatabaseFailure

log = structlog.get_logger("infra_service.errors")

_NOT_YOURS: Final = (
    "The error is in the service, not in your request. If the error persists, send the request id "
    "to the operator."
)
_OTHER_HOST: Final = (
    "The Host header is not a host name of this service. Use a configured name, or ask "
    "an operator to add this name to ALLOWED_HOSTS."
)


def _plain(
    request: HttpRequest, status: int, reason: str, message: str, **more: Any
) -> JsonResponse:
    request.error_reason = reason  # type: ignore[attr-defined]
    request_id, trace_id = getattr(request, "request_id", ""), getattr(request, "trace_id", "")
    body = error_body(status, reason, message, request_id=request_id, trace_id=trace_id, **more)
    return JsonResponse(body, status=status)


def refused(request: HttpRequest, error: APIException) -> JsonResponse:
    """Return the response for an error that occurs before a view is selected."""
    more = {name: getattr(error, name, None) for name in ("metadata", "field_violations")}
    return _plain(request, error.status_code, reason_of(error), str(error.detail), **more)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Handle 400 for Django: errors before any view, such as an invalid Host header."""
    if isinstance(exception, RequestDataTooBig):
        return refused(request, too_large())
    if isinstance(exception, FileRefused):
        return _plain(
            request, HTTPStatus.BAD_REQUEST, "FILE_REFUSED", "File uploads are not accepted."
        )
    if isinstance(exception, DisallowedHost):
        return _plain(request, HTTPStatus.BAD_REQUEST, "BAD_REQUEST", _OTHER_HOST)
    if isinstance(exception, APIException) and not _is_for_people(request):
        return refused(request, exception)
    title, status = "The request is malformed.", HTTPStatus.BAD_REQUEST
    if _is_for_people(request):
        advice = "Check that the address is complete, and that the list supports the filter."
        return _page(request, status, "BAD_REQUEST", title, advice)
    return _plain(request, status, "BAD_REQUEST", title)


def permission_denied(request: HttpRequest, exception: Exception) -> JsonResponse:  # noqa: ARG001 - Django's signature
    """Handle 403 for Django."""
    return _plain(
        request,
        HTTPStatus.FORBIDDEN,
        "PERMISSION_DENIED",
        "You do not have permission for this action.",
    )


def not_found(request: HttpRequest, exception: Exception) -> JsonResponse:  # noqa: ARG001 - Django's signature
    """Handle 404 for Django: unknown paths."""
    meant = similar_path(request.path_info)
    advice = f"Use {meant} instead." if meant else "/api/docs/ lists the available paths."
    message = f"There is no resource at this path. {advice}"
    metadata = {"suggestion": meant} if meant else None
    return _plain(request, HTTPStatus.NOT_FOUND, "NOT_FOUND", message, metadata=metadata)


def server_error(request: HttpRequest) -> HttpResponse:
    """Handle 500 for Django: exceptions that the handler of a view does not cover."""
    exception = sys.exception()
    if failure := database_failure(exception):
        return _unavailable(request, failure)
    log.error("unhandled_exception", exc_info=exception)
    status, reason = HTTPStatus.INTERNAL_SERVER_ERROR, "INTERNAL"
    if _is_for_people(request):
        return _page(request, status, reason, "Something went wrong", _NOT_YOURS)
    return _plain(
        request,
        status,
        reason,
        "Internal error. The log contains the details under this request id.",
    )


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001 - Django's signature
    """Handle a CSRF failure for Django. Only forms of the admin can cause such a failure."""
    title = "The form has expired"
    advice = (
        "Go back, reload the page, and submit the form again. You may have logged in since you "
        "opened the page, or your browser may block cookies. If all forms fail, ask an operator to "
        "check CSRF_TRUSTED_ORIGINS."
    )
    return _page(request, HTTPStatus.FORBIDDEN, "CSRF_FAILED", title, advice)


def _is_for_people(request: HttpRequest) -> bool:
    return request.path.startswith("/admin/")


def _page(request: HttpRequest, status: int, reason: str, title: str, advice: str) -> HttpResponse:
    """Render an error page for the admin, without a database query for the user."""
    request.error_reason = reason  # type: ignore[attr-defined]
    context = {
        "title": title,
        "advice": advice,
        "request_id": getattr(request, "request_id", ""),
        "trace_id": getattr(request, "trace_id", ""),
        "site_header": admin.site.site_header,
        "site_title": admin.site.site_title,
    }
    return HttpResponse(render_to_string("admin/failure.html", context), status=status)


def _unavailable(request: HttpRequest, failure: DatabaseFailure) -> HttpResponse:
    """Return a 503 as a page in the admin, or as JSON for API clients."""
    response: HttpResponse
    if _is_for_people(request):
        title, advice = str(failure.detail), "Reload the page in a moment."
        response = _page(request, failure.status_code, reason_of(failure), title, advice)
    else:
        response = refused(request, failure)
    if failure.wait is not None:
        response["Retry-After"] = str(failure.wait)
    return response


def insecure_transport(request: HttpRequest) -> JsonResponse:
    """Return an error for plain HTTP. A redirect would turn a POST into a GET."""
    return _plain(
        request,
        HTTPStatus.BAD_REQUEST,
        "HTTPS_REQUIRED",
        "Use HTTPS.",
        rpc_status="FAILED_PRECONDITION",
    )
