"""OpenAPI schema of keys, tokens and the audit log."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers

from apikeys.api import samples
from apikeys.api.serializers import (
    AccessTokenSerializer,
    ApiKeySerializer,
    AuditEventSerializer,
    CallerSerializer,
    OwnerSerializer,
    RotationSerializer,
    RunField,
)
from apikeys.errors import (
    ApiKeyExpired,
    ApiKeyRevoked,
    AuditLogNotFound,
    ConcurrentChange,
    GrantExceeded,
    SecretRetired,
    TooManyApiKeys,
)
from infra_service.lib.api.openapi_words import (
    NO_STORE,
    answer_example,
    error_docs,
    list_schema,
    needs,
    object_of,
    request_example,
    resource_schema,
    wrapped,
)

_RUN = {
    "jti": "The id of the platform's token; null if the token has no id.",
    "sub": "The subject of the platform's token; null if the token has no subject.",
    "repository": "The repository, project or service account; empty if unknown.",
    "commit": "The commit that the pipeline builds; empty if unknown.",
    "run": "The platform's id for the run or job; empty if unknown.",
}
_CLAIMS = {name: {"type": ["string", "null"], "description": of} for name, of in _RUN.items()}
_OF_RUN = {"description": "The run of a pipeline, as described in the platform's token."}
extend_schema_field({**_OF_RUN, **object_of(**_CLAIMS)}, component_name="TokenRun")(RunField)

_USER = OwnerSerializer(help_text="The owner of the token.")
_SECRET = serializers.CharField(help_text="The secret, shown only in this response.")
_NEW_KEY = wrapped("ApiKeyWithSecret", "api_key", ApiKeySerializer, secret=_SECRET)
_TOKEN = wrapped("AccessTokenAnswer", "access_token", AccessTokenSerializer)
_NEW_TOKEN = wrapped("AccessTokenWithSecret", "access_token", AccessTokenSerializer, secret=_SECRET)

_ALSO_REVOKED = serializers.IntegerField(
    min_value=0, help_text="Number of descendant keys that were also revoked."
)
_REVOKED_KEY = wrapped(
    "RevokedApiKey", "api_key", ApiKeySerializer, descendants_revoked=_ALSO_REVOKED
)
_REVOKED_TOKEN = wrapped(
    "RevokedAccessToken", "access_token", AccessTokenSerializer, descendants_revoked=_ALSO_REVOKED
)

_SHOWN_NEW_KEY = answer_example({"api_key": samples.API_KEY, "secret": samples.API_KEY_SECRET})
# Swagger UI sends the example unchanged. The example therefore requests a single scope, and a
# binding to a component that does not exist.
_REQUESTED_KEY = {
    "name": "example",
    "scopes": ["state:read"],
    **{name: samples.API_KEY[name] for name in ("binding", "expires_at")},
}

api_keys_schema = resource_schema(
    "api_key",
    "The caller's own API keys within the caller's binding.",
    ApiKeySerializer,
    samples.API_KEY,
    change_errors=(
        ApiKeyRevoked,
        ApiKeyExpired,
        TooManyApiKeys,
        GrantExceeded,
        SecretRetired,
        ConcurrentChange,
    ),
    create=extend_schema(
        operation_id="create_api_key",
        parameters=[NO_STORE],
        request=wrapped("CreateApiKey", "api_key", ApiKeySerializer),
        responses={
            201: _NEW_KEY,
            **error_docs(TooManyApiKeys, GrantExceeded, SecretRetired),
        },
        examples=[
            request_example({"api_key": _REQUESTED_KEY}),
            _SHOWN_NEW_KEY,
        ],
    ),
    rotate=extend_schema(
        operation_id="rotate_api_key",
        parameters=[NO_STORE],
        request=RotationSerializer,
        responses={
            200: _NEW_KEY,
            **error_docs(
                ApiKeyRevoked,
                ApiKeyExpired,
                GrantExceeded,
                SecretRetired,
                ConcurrentChange,
            ),
        },
        examples=[request_example({"grace_period": "3600s"}), _SHOWN_NEW_KEY],
    ),
    revoke=extend_schema(
        operation_id="revoke_api_key",
        request=None,
        responses={200: _REVOKED_KEY, **error_docs(SecretRetired)},
        examples=[
            answer_example({"api_key": samples.REVOKED_API_KEY, "descendants_revoked": 2}),
        ],
    ),
)

access_tokens_schema = extend_schema_view(
    list=list_schema(
        "access_token",
        "The caller's own access tokens, minted or issued, within the caller's binding.",
        samples.ACCESS_TOKEN,
    ),
    retrieve=extend_schema(
        operation_id="get_access_token",
        responses=_TOKEN,
        examples=[answer_example({"access_token": samples.ACCESS_TOKEN})],
    ),
    create=extend_schema(
        operation_id="mint_access_token",
        # Narrower than the view: an access token cannot mint tokens.
        auth=needs("apikey:write", of="apiKey"),
        parameters=[NO_STORE],
        request=wrapped("CreateAccessToken", "access_token", AccessTokenSerializer),
        responses={201: _NEW_TOKEN, **error_docs(GrantExceeded)},
        examples=[
            request_example({"access_token": samples.NEW_ACCESS_TOKEN}),
            answer_example(
                {"access_token": samples.ACCESS_TOKEN, "secret": samples.ACCESS_TOKEN_SECRET}
            ),
        ],
    ),
    revoke=extend_schema(
        operation_id="revoke_access_token",
        request=None,
        responses={200: _REVOKED_TOKEN, **error_docs(SecretRetired)},
        examples=[
            answer_example(
                {"access_token": samples.REVOKED_ACCESS_TOKEN, "descendants_revoked": 0}
            ),
        ],
    ),
)

whoami_schema = extend_schema_view(
    get=extend_schema(
        operation_id="whoami",
        summary="Get the caller",
        responses=wrapped("CallerAnswer", "caller", CallerSerializer, user=_USER),
        examples=[answer_example({"caller": samples.CALLER, "user": samples.OWNER})],
    )
)

audit_events_schema = extend_schema_view(
    get=list_schema(
        "audit_event",
        "The audit log, newest first.",
        samples.AUDIT_EVENT,
        responses={200: AuditEventSerializer(many=True), **error_docs(AuditLogNotFound)},
    )
)
