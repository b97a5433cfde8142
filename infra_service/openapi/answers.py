"""Descriptions of responses: the error format, and the headers of all responses."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.plumbing import ResolvedComponent

from infra_service.lib.api.errors import DOMAIN, error_body, reason_of
from infra_service.lib.api.idempotency import REPLAYED, IdempotencyKeyInUse
from infra_service.lib.api.openapi_words import Named, described_object, list_of
from infra_service.lib.api.throttling import POLICY, REMAINING
from infra_service.lib.database.failures import FAILURES
from infra_service.openapi.components import component, lift
from infra_service.openapi.error_docs import error_doc

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from drf_spectacular.plumbing import ComponentRegistry

    from infra_service.lib.api.openapi_words import DeclaredErrors
    from infra_service.openapi.error_docs import ErrorDoc

#: The names in google.rpc.Code.
CODES: Final = [
    "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
    "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
]  # fmt: skip


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _detail(name: str, description: str, /, **properties: Any) -> Named:
    kind = {**_text("The type of the detail."), "const": f"type.googleapis.com/google.rpc.{name}"}
    return described_object(name, description, **{"@type": kind}, **properties)


_VIOLATION: Final = described_object(
    "FieldViolation",
    "An invalid field or parameter.",
    field=_text("The path of the field, such as `api_key.scopes.1`, or the parameter."),
    description=_text("The human-readable cause."),
    reason=_text("The machine-readable cause, such as UNKNOWN_SCOPE."),
)
_INFO: Final = _detail(
    "ErrorInfo",
    "The machine-readable cause.",
    reason={
        **_text("The stable, machine-readable cause. docs/reference/errors.md lists all causes."),
        "pattern": "^[A-Z0-9_]+$",
    },
    domain=_text(f"Always {DOMAIN}."),
    metadata={
        "type": "object",
        "description": "Values that belong to the reason, as text.",
        "additionalProperties": {"type": "string"},
    },
)
_BAD_REQUEST: Final = _detail(
    "BadRequest",
    "The invalid fields of a request; absent from other errors.",
    field_violations={**list_of(_VIOLATION), "description": "An item for each violation."},
)
_REQUEST: Final = _detail(
    "RequestInfo",
    "The id of the request.",
    request_id=_text("The id in the `X-Request-ID` header, the log and the audit log."),
    trace_id=_text(
        "The trace id of the request's `traceparent`; absent if the request has no such header."
    ),
)
_REQUEST["required"].remove("trace_id")
_DETAIL: Final = Named(
    "ErrorDetail",
    {
        "description": "A detail of an error. `@type` identifies its type.",
        "anyOf": [_INFO, _BAD_REQUEST, _REQUEST],
    },
)
_BODY: Final = described_object(
    "ErrorBody",
    "The fields of an error.",
    code={
        "type": "integer",
        "minimum": 400,
        "maximum": 599,
        "description": "The HTTP status of the response.",
    },
    status={**_text("The category of the error, broader than `reason`."), "enum": CODES},
    message=_text("The human-readable cause and remedy; the text may change."),
    details={
        **list_of(_DETAIL),
        "minItems": 2,
        "description": "The details: ErrorInfo first, RequestInfo last.",
    },
)
ERROR: Final = described_object(
    "Error",
    "The format of errors (AIP-193), except for most errors of token exchanges. `message` is "
    "human-readable and may change; `reason` and `metadata` are machine-readable and stable.",
    error={"allOf": [_BODY], "description": "The status, the cause and the details."},
)

_REQUEST_ID: Final = "X-Request-ID"
_EXPIRY: Final = "Token-Expires-At"
_CHALLENGE: Final = "WWW-Authenticate"
_WAIT: Final = "Retry-After"
_HEADERS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    _REQUEST_ID: (
        "RequestId",
        {
            "description": "The request id in the log and the audit log.",
            "required": True,
            "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
        },
    ),
    _EXPIRY: (
        "TokenExpiresAt",
        {
            "description": "Expiry of the token. Sent only in the seven days before the expiry.",
            "schema": {"type": "string", "format": "date-time"},
        },
    ),
    _CHALLENGE: (
        "Challenge",
        {
            "description": "The accepted scheme, or the missing scope (RFC 6750).",
            "schema": {"type": "string", "pattern": "^Bearer "},
        },
    ),
    _WAIT: (
        "RetryAfter",
        {
            "description": "Seconds after which the same request may be sent again; absent if a "
            "retry cannot succeed.",
            "schema": {"type": "integer", "minimum": 1},
        },
    ),
    POLICY: (
        "RateLimitPolicy",
        {
            "description": "The rate limits that apply to the request: `q` requests in `w` "
            "seconds. Absent if all limits are off (draft-ietf-httpapi-ratelimit-headers).",
            "schema": {"type": "string"},
            "example": '"token";q=60000;w=60, "owner";q=120000;w=60',
        },
    ),
    REMAINING: (
        "RateLimit",
        {
            "description": "The status of these limits: `r` remaining requests, and `t` seconds "
            "until the next window. Absent if all limits are off.",
            "schema": {"type": "string"},
            "example": '"token";r=59998;t=42, "owner";r=119731;t=42',
        },
    ),
    REPLAYED: (
        "IdempotentReplayed",
        {
            "description": "Sent only with the stored response to an earlier request with the same "
            "`Idempotency-Key`.",
            "schema": {"type": "string", "const": "true"},
        },
    ),
}
_OF_STATUS: Final = {401: _CHALLENGE, 403: _CHALLENGE, 429: _WAIT, 503: _WAIT}
# Sets of reasons that become shared components, and their names.
_SHARED: Final = {
    frozenset({"BAD_REQUEST", "HTTPS_REQUIRED"}): "BadRequest",
    frozenset({"CREDENTIALS_MISSING", "CREDENTIALS_INVALID", "TOKEN_EXPIRED"}): "Unauthenticated",
    frozenset({"SCOPE_INSUFFICIENT", "TOKEN_KIND_UNSUPPORTED"}): "PermissionDenied",
    frozenset({"NOT_ACCEPTABLE"}): "NotAcceptable",
    frozenset({"REQUEST_TIMEOUT"}): "RequestTimeout",
    frozenset({"LENGTH_REQUIRED"}): "LengthRequired",
    frozenset({"REQUEST_TOO_LARGE"}): "RequestTooLarge",
    frozenset({"URI_TOO_LONG"}): "UriTooLong",
    frozenset({"UNSUPPORTED_MEDIA_TYPE"}): "UnsupportedMediaType",
    frozenset({"RATE_LIMITED"}): "RateLimited",
    frozenset({"INTERNAL"}): "Internal",
    frozenset(map(reason_of, FAILURES)): "Unavailable",
}


class Answers:
    """The responses of an operation, with components shared between operations."""

    def __init__(self, registry: ComponentRegistry, *, is_public: bool) -> None:
        self._registry, self._is_public = registry, is_public

    def error_answers(
        self, common: Iterable[ErrorDoc], declared: Sequence[DeclaredErrors]
    ) -> dict[str, Any]:
        """Return the error responses by status: common errors and declared errors."""
        reasons: dict[int, dict[str, str]] = {}
        own = [error_doc(error) for refusal in declared for error in refusal.errors]
        for status, reason, meaning in (*own, *common):
            reasons.setdefault(status, {}).setdefault(reason, meaning)
        schemas = {int(r.errors[0].status_code): _schema_of(r) for r in declared}
        return {
            str(status): self._refusal(status, reasons[status], schemas.get(status, ERROR))
            for status in sorted(reasons)
        }

    def _refusal(self, status: int, reasons: dict[str, str], schema: Named) -> Any:
        content: dict[str, Any] = {"schema": lift(schema, self._registry)}
        answer = {
            "description": "\n".join(f"- `{name}`: {text}" for name, text in reasons.items()),
            "content": {"application/json": content},
        }
        more = (_WAIT,) if IdempotencyKeyInUse.default_code in reasons else ()
        self.add_headers(answer, status, *more)
        name = _SHARED.get(frozenset(reasons))
        if name is None:
            return answer
        reason, meaning = next(iter(reasons.items()))
        content["example"] = error_body(status, reason, meaning, request_id=_SAMPLE_ID)
        if self._is_public:  # without the headers of a token
            name = f"Public{name}"
        return component(self._registry, ResolvedComponent.RESPONSE, name, answer)

    def add_headers(self, answer: dict[str, Any], status: int = 200, *more: str) -> None:
        names = [_REQUEST_ID, *more]
        if status in _OF_STATUS:
            names.append(_OF_STATUS[status])
        if not self._is_public and status != HTTPStatus.UNAUTHORIZED:
            names.append(_EXPIRY)
        # Other errors may also contain these headers, unless they precede the authentication.
        is_success = status < HTTPStatus.MULTIPLE_CHOICES and not self._is_public
        if is_success or status == HTTPStatus.TOO_MANY_REQUESTS:
            names += [POLICY, REMAINING]
        headers = answer.setdefault("headers", {})
        for name in names:
            known_as, header = _HEADERS[name]
            headers[name] = component(self._registry, ResolvedComponent.HEADER, known_as, header)


_SAMPLE_ID: Final = "01a1fd5de40e71008d5de2f5d6b32654"


def _schema_of(declared: DeclaredErrors) -> Named:
    """Return the error schema, with the view's additional fields or alternative schema."""
    if (beside := declared.beside) is not None:
        text = f"An error, with the additional fields of {beside.name}."
        return Named(f"{beside.name}Error", {"description": text, "allOf": [ERROR, beside]})
    if (instead := declared.instead) is not None:
        text = f"{instead.name}, or the general error format for other causes."
        return Named(f"{instead.name}OrError", {"description": text, "anyOf": [instead, ERROR]})
    return ERROR
