"""How keys, tokens and the trail are described in OpenAPI."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import (
    extend_schema,
    extend_schema_view,
    inline_serializer,
)
from rest_framework import serializers

from apikeys.serializers import (
    AccessTokenSerializer,
    ApiKeySerializer,
    CallerSerializer,
    NothingSerializer,
    OwnerSerializer,
    RotationSerializer,
)


def wrapped(
    name: str, field: str, serializer: type[serializers.Serializer[Any]], **beside: Any
) -> Any:
    """Return the description of a resource in its wrapper, and of what stands beside it."""
    return inline_serializer(name, {field: serializer(), **beside})


_SECRET = serializers.CharField(help_text="The secret, shown only now.")
_MASK = serializers.CharField(
    required=False,
    help_text="The fields to change, such as 'name,scopes'; '*' is all. Also in the query.",
)


def resource_schema(resource: str, serializer: type[serializers.Serializer[Any]]) -> Any:
    """Return the decorator of a viewset that lists, creates, reads and changes a resource."""
    name = serializer.__name__.removesuffix("Serializer")
    answer = wrapped(f"{name}Answer", resource, serializer)
    return extend_schema_view(
        list=extend_schema(operation_id=f"list_{resource}s"),
        retrieve=extend_schema(operation_id=f"get_{resource}", responses=answer),
        create=extend_schema(
            operation_id=f"create_{resource}",
            request=wrapped(f"{name}Request", resource, serializer),
            responses={201: answer},
        ),
        partial_update=extend_schema(
            operation_id=f"update_{resource}",
            request=wrapped(f"{name}Change", resource, serializer, update_mask=_MASK),
            responses=answer,
        ),
    )


_KEY = wrapped("ApiKeyAnswer", "api_key", ApiKeySerializer)
_NEW_KEY = wrapped("ApiKeyWithSecret", "api_key", ApiKeySerializer, secret=_SECRET)
_KEY_CHANGE = wrapped("ApiKeyChange", "api_key", ApiKeySerializer, update_mask=_MASK)
_TOKEN = wrapped("AccessTokenAnswer", "access_token", AccessTokenSerializer)
_NEW_TOKEN = wrapped("AccessTokenWithSecret", "access_token", AccessTokenSerializer, secret=_SECRET)

api_keys_schema = extend_schema_view(
    list=extend_schema(operation_id="list_api_keys"),
    retrieve=extend_schema(operation_id="get_api_key", responses=_KEY),
    create=extend_schema(
        operation_id="create_api_key",
        request=wrapped("ApiKeyRequest", "api_key", ApiKeySerializer),
        responses={201: _NEW_KEY},
    ),
    partial_update=extend_schema(
        operation_id="update_api_key", request=_KEY_CHANGE, responses=_KEY
    ),
    rotate=extend_schema(
        operation_id="rotate_api_key", request=RotationSerializer, responses=_NEW_KEY
    ),
    revoke=extend_schema(operation_id="revoke_api_key", request=NothingSerializer, responses=_KEY),
)

access_tokens_schema = extend_schema_view(
    list=extend_schema(operation_id="list_access_tokens"),
    retrieve=extend_schema(operation_id="get_access_token", responses=_TOKEN),
    create=extend_schema(
        operation_id="mint_access_token",
        request=wrapped("AccessTokenRequest", "access_token", AccessTokenSerializer),
        responses={201: _NEW_TOKEN},
    ),
    revoke=extend_schema(
        operation_id="revoke_access_token", request=NothingSerializer, responses=_TOKEN
    ),
)

whoami_schema = extend_schema_view(
    get=extend_schema(
        operation_id="whoami",
        responses=wrapped("CallerAnswer", "caller", CallerSerializer, user=OwnerSerializer()),
    )
)

audit_events_schema = extend_schema_view(get=extend_schema(operation_id="list_audit_events"))
