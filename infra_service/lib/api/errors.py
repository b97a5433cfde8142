"""The format of all error responses (AIP-193), and the exception handler that produces it.

Apps raise DRF's ``APIException`` or a subclass. These attributes of the exception determine the
response: ``default_code`` (the reason), ``rpc_status``, ``metadata`` (text to text),
``field_violations``, ``top_level`` (fields next to ``error``), ``auth_header``, ``wait`` (seconds
for Retry-After) and ``advice`` (the remedy for API clients, which the admin omits).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import Error as DatabaseError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from infra_service.lib.api.bodies import BodyTooLarge
from infra_service.lib.api.throttling import RateLimited, count_failure
from infra_service.lib.database.failures import failure_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra_service.lib.database.failures import DatabaseFailure

log = structlog.get_logger("infra_service.errors")

DOMAIN: Final = "infra-service"
_TYPE: Final = "type.googleapis.com/google.rpc."

# The names in google.rpc.Code by HTTP status. An exception can specify another name.
_RPC_STATUS: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    406: "INVALID_ARGUMENT",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    410: "NOT_FOUND",
    411: "INVALID_ARGUMENT",
    413: "INVALID_ARGUMENT",
    414: "INVALID_ARGUMENT",
    415: "INVALID_ARGUMENT",
    417: "INVALID_ARGUMENT",
    422: "INVALID_ARGUMENT",
    423: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    431: "INVALID_ARGUMENT",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
}
# Replacements for DRF's less specific codes.
_REASONS: Final = {
    "PARSE_ERROR": "INVALID_JSON",
    "INVALID": "INVALID_FIELDS",
    "NOT_AUTHENTICATED": "CREDENTIALS_MISSING",
    "THROTTLED": "RATE_LIMITED",
    "ERROR": "INTERNAL",
}
# The remedies for DRF's own errors, which have no ``advice``.
_ADVICE: Final = {
    exceptions.NotAcceptable: "Responses are JSON. Send 'Accept: application/json', or omit the "
    "Accept header.",
    exceptions.MethodNotAllowed: "The Allow header lists the supported methods.",
    exceptions.UnsupportedMediaType: "Send JSON, with 'Content-Type: application/json'.",
}


def error_body(
    status: int,
    reason: str,
    message: str,
    *,
    request_id: str,
    trace_id: str = "",
    rpc_status: str | None = None,
    metadata: Mapping[str, str] | None = None,
    field_violations: list[dict[str, str]] | None = None,
) -> dict[str, Any]:
    """Return an error body with a human-readable message and a machine-readable reason."""
    info: dict[str, Any] = {"@type": _TYPE + "ErrorInfo", "reason": reason, "domain": DOMAIN}
    info["metadata"] = dict(metadata or {})
    details = [info]
    if field_violations:
        details.append({"@type": _TYPE + "BadRequest", "field_violations": field_violations})
    ids = {"request_id": request_id, **({"trace_id": trace_id} if trace_id else {})}
    details.append({"@type": _TYPE + "RequestInfo", **ids})
    return {
        "error": {
            "code": status,
            "status": rpc_status or _RPC_STATUS.get(status, "UNKNOWN"),
            "message": message,
            "details": details,
        }
    }


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Return the response to an exception of a view, for DRF. None lets Django return a 500."""
    error = _as_api_exception(exc)
    if error is None:
        return None
    request = context["request"]._request
    # An error with a token id is also an authentication failure.
    token_id = getattr(error, "token_id", None)
    is_failure = isinstance(error, exceptions.AuthenticationFailed) or token_id is not None
    # Failures must not exhaust the rate limit of a valid token.
    counted_id = None if getattr(error, "is_of_working_token", False) else token_id
    if is_failure and (exceeded := count_failure(request, counted_id)):
        error = RateLimited(exceeded)
    violations = list(getattr(error, "field_violations", []))
    if isinstance(error, exceptions.ValidationError):
        violations += _violations(error.get_full_details(), "")
    reason = reason_of(error)
    body = error_body(
        error.status_code,
        reason,
        _message(error, violations),
        request_id=request.request_id,
        trace_id=getattr(request, "trace_id", ""),
        rpc_status=getattr(error, "rpc_status", None),
        metadata=getattr(error, "metadata", None),
        field_violations=violations,
    )
    request.error_reason = reason
    # A view's own renderer, such as the schema's YAML, would change the format.
    context["request"].accepted_renderer = JSONRenderer()
    context["request"].accepted_media_type = JSONRenderer.media_type
    if error.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("internal_error", reason=reason, exc_info=exc)
    headers = {}
    if auth_header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = auth_header
    if (wait := getattr(error, "wait", None)) is not None:
        headers["Retry-After"] = str(max(1, int(-(-wait // 1))))
    return Response(
        {**getattr(error, "top_level", {}), **body}, status=error.status_code, headers=headers
    )


def _as_api_exception(exc: Exception) -> exceptions.APIException | None:
    match exc:
        case exceptions.APIException():
            return exc
        case Http404():
            return exceptions.NotFound()
        case PermissionDenied():
            return exceptions.PermissionDenied()
        case RequestDataTooBig():
            return too_large()
        case DatabaseError():
            return database_failure(exc)
    return None


def database_failure(exc: BaseException | None) -> DatabaseFailure | None:
    """Log a database exception and return its API error, or None for other exceptions."""
    failure = failure_of(exc)
    if failure is not None:
        log.warning("database_failure", reason=failure.default_code, exc_info=exc)
    return failure


def too_large() -> BodyTooLarge:
    """Return the API error for Django's ``RequestDataTooBig``."""
    return BodyTooLarge(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


def reason_of(error: exceptions.APIException | type[exceptions.APIException]) -> str:
    """Return the machine-readable reason of an error or an error class."""
    code = str(error.default_code).upper()
    return _REASONS.get(code, code)


def _message(error: exceptions.APIException, violations: list[dict[str, str]]) -> str:
    if isinstance(error.detail, str):
        advice = getattr(error, "advice", _ADVICE.get(type(error), ""))
        return f"{error.detail} {advice}".rstrip()
    return " ".join(f"{v['field']}: {v['description']}" for v in violations)


def _violations(details: Any, field: str) -> list[dict[str, str]]:
    """Flatten DRF's nested error details into one entry per error, with a dotted path."""
    if _is_leaf(details):
        description, reason = str(details["message"]), str(details["code"]).upper()
        return [{"field": field or "body", "description": description, "reason": reason}]
    pairs = enumerate(details) if isinstance(details, list) else details.items()
    found = []
    for key, value in pairs:
        is_leaf = isinstance(details, list) and _is_leaf(value)
        part = "" if is_leaf or key == "non_field_errors" else str(key)
        found += _violations(value, ".".join(filter(None, (field, part))))
    return found


def _is_leaf(details: Any) -> bool:
    """Return whether these details are an error, and not fields, which may have the same names."""
    return isinstance(details, dict) and isinstance(details.get("message"), str)
