"""OpenAPI schema of the token exchange."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import exceptions

from apikeys.api.exchange_parameters import (
    ACCESS_TOKEN_TYPE,
    GRANT_TYPE,
    SUBJECT_TOKEN_TYPES,
    TTL_PATTERN,
)
from apikeys.federation.exchange_errors import ExchangeRefused, IssuerBusy
from apikeys.models.credentials import MAX_TOKEN_SECONDS
from infra_service.lib.api.bodies import RequestTimeout
from infra_service.lib.api.openapi_words import (
    NO_STORE,
    Named,
    answer_example,
    as_component,
    described_object,
    error_docs,
    request_example,
)
from infra_service.lib.database.failures import FAILURES

_TTL: Final = {
    "description": "Seconds, as a string such as '900' or '900s', or as an integer.",
    "anyOf": [
        {"type": "string", "pattern": TTL_PATTERN},
        {"type": "integer", "minimum": 1, "maximum": MAX_TOKEN_SECONDS},
    ],
}
_ERROR_CODE: Final = Named(
    "OAuthErrorCode",
    {
        "type": "string",
        "description": "An error code of RFC 6749 §5.2 or RFC 8693 §2.2.2.",
        "enum": [
            "invalid_request",
            "invalid_grant",
            "invalid_scope",
            "invalid_target",
            "unsupported_grant_type",
        ],
    },
)
_TOKEN_TYPE: Final = Named(
    "SubjectTokenType",
    {
        "type": "string",
        "description": "A token type of RFC 8693 §3. The service verifies both types identically.",
        "enum": list(SUBJECT_TOKEN_TYPES),
    },
)
_OAUTH_ERROR: Final = described_object(
    "OAuthError",
    "The OAuth error format (RFC 6749 §5.2). `error` is machine-readable.",
    error={"allOf": [_ERROR_CODE], "description": "The machine-readable error code."},
    error_description={
        "type": "string",
        "description": "The human-readable cause, followed by the request id, and by the trace id "
        "if the request has one.",
    },
)
_REQUEST: Final = Named(
    "TokenExchange",
    {
        "type": "object",
        "description": "The parameters of a token exchange (RFC 8693 §2.1).",
        "required": ["grant_type", "client_id", "subject_token", "subject_token_type"],
        "properties": {
            "grant_type": {
                "type": "string",
                "const": GRANT_TYPE,
                "description": "The grant type of a token exchange.",
            },
            "client_id": {
                "type": "string",
                "pattern": "^fed-[0-9a-z]{1,36}$",
                "description": "The id of the trust policy.",
            },
            "subject_token": {
                "type": "string",
                "minLength": 1,
                "description": "The platform's signed token, issued for the issuer's audience.",
            },
            "subject_token_type": {
                "allOf": [_TOKEN_TYPE],
                "description": "The type of `subject_token`.",
            },
            "requested_token_type": {
                "type": "string",
                "const": ACCESS_TOKEN_TYPE,
                "description": "The type of the issued token. The service rejects other types.",
            },
            "scope": {
                "type": "string",
                "description": "Scopes separated by spaces. The default is all scopes of the "
                "policy.",
            },
            "ttl": {
                "description": "Lifetime of the token in seconds. The default is an hour, or the "
                "maximum lifetime of the policy if it is shorter.",
                **as_component("ExchangeTtl", _TTL),
            },
        },
    },
)
_ANSWER: Final = described_object(
    "ExchangedToken",
    "A service access token, which belongs to the owner of the policy (RFC 8693 §2.2.1).",
    access_token={"type": "string", "description": "The secret, shown only in this response."},
    issued_token_type={
        "type": "string",
        "const": ACCESS_TOKEN_TYPE,
        "description": "The type of `access_token`.",
    },
    token_type={
        "type": "string",
        "const": "Bearer",
        "description": "The scheme of the `Authorization` header.",
    },
    expires_in={
        "type": "integer",
        "minimum": 0,
        "description": "The lifetime in seconds, from the time of the response.",
    },
    scope={"type": "string", "description": "The granted scopes, separated by spaces."},
)
_EXCHANGE: Final[dict[str, Any]] = {
    "grant_type": GRANT_TYPE,
    "client_id": "fed-03h9ydk2x8wq4c1m6tz0b5n7r",
    "subject_token": "eyJhbGciOiJSUzI1NiIsImtpZCI6Ii4uLiJ9...",
    "subject_token_type": SUBJECT_TOKEN_TYPES[0],
    "scope": "state:read state:write",
    "ttl": "900s",
}
_ANSWERED: Final[dict[str, Any]] = {
    "access_token": "iss_…",
    "issued_token_type": ACCESS_TOKEN_TYPE,
    "token_type": "Bearer",
    "expires_in": 900,
    "scope": "state:read state:write",
}

exchange_schema = extend_schema_view(
    post=extend_schema(
        operation_id="exchange_token",
        parameters=[NO_STORE],
        # The endpoint also accepts JSON, but generated clients would mix the two bodies.
        request={"application/x-www-form-urlencoded": _REQUEST},
        responses={
            200: _ANSWER,
            **error_docs(ExchangeRefused, instead=_OAUTH_ERROR),
            **error_docs(
                RequestTimeout,
                exceptions.UnsupportedMediaType,
                exceptions.Throttled,
                IssuerBusy,
                *FAILURES,
            ),
        },
        examples=[request_example(_EXCHANGE), answer_example(_ANSWERED)],
    )
)
