from __future__ import annotations

import datetime as dt
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from apikeys import actions
from apikeys.grants import EVERYWHERE, Binding
from apikeys.models import MAX_BOUND_IDS, AccessToken, AuditEvent
from apikeys.querysets import AccessTokenStatus, ApiKeyStatus
from apikeys.scopes import Scope
from infra_service.api.fields import (
    IdField,
    SecondsField,
    StrictSerializer,
    TextField,
    TimestampField,
    WordField,
    WordsField,
)


class OwnerSerializer(serializers.Serializer[Any]):
    """Who created it."""

    id = serializers.CharField(read_only=True)
    display_name = serializers.CharField(read_only=True)
    email = serializers.CharField(read_only=True)


class BindingSerializer(StrictSerializer):
    """Where it works: in one cluster, or for components, environments or both."""

    cluster_id = IdField(required=False, allow_null=True)
    component_ids = serializers.ListField(
        child=IdField(),
        required=False,
        allow_null=True,
        allow_empty=False,
        max_length=MAX_BOUND_IDS,
    )
    environment_ids = serializers.ListField(
        child=IdField(),
        required=False,
        allow_null=True,
        allow_empty=False,
        max_length=MAX_BOUND_IDS,
    )

    def get_attribute(self, instance: Any) -> Binding | None:
        """Return the binding, or None where it is everywhere."""
        binding: Binding = instance.binding
        return None if binding == EVERYWHERE else binding

    def to_representation(self, instance: Binding) -> dict[str, Any]:
        """Return all fields, null where nothing is bound."""
        columns = instance.columns()
        return {name.removeprefix("bound_"): value for name, value in columns.items()}

    def to_internal_value(self, data: Any) -> Binding:
        given = super().to_internal_value(data)
        names = ("component_ids", "environment_ids")
        lists = {
            name: None if given.get(name) is None else frozenset(given[name]) for name in names
        }
        binding = Binding(given.get("cluster_id"), **lists)
        if binding.cluster_id is not None and any(ids is not None for ids in lists.values()):
            detail = ErrorDetail("Bound to a cluster, or to components and environments.", "both")
            raise ValidationError({"cluster_id": [detail]})
        return binding


class CredentialSerializer(StrictSerializer):
    """What keys and tokens have in common."""

    id = serializers.CharField(read_only=True)
    name = TextField(max_length=200)
    scopes = WordsField(Scope.choices, code="unknown_scope", allow_empty=False)
    binding = BindingSerializer(
        required=False,
        allow_null=True,
        help_text="Where it works; null is everywhere. Unless said, where the creator works.",
    )
    expires_at = TimestampField(
        in_future=True,
        required=False,
        allow_null=True,
        help_text="Null is never; nothing ends later than what made it.",
    )
    last_used_at = TimestampField(read_only=True, allow_null=True)
    revoked_at = TimestampField(read_only=True, allow_null=True)
    created_by = OwnerSerializer(read_only=True)
    created_at = TimestampField(read_only=True)

    def to_internal_value(self, data: Any) -> Any:
        """Return the validated fields; a binding that is null works everywhere."""
        validated = super().to_internal_value(data)
        if "binding" in validated and validated["binding"] is None:
            validated["binding"] = EVERYWHERE
        return validated


class ApiKeySerializer(CredentialSerializer):
    """An API key. Its secret is shown once, beside it, when it is created or rotated."""

    id = serializers.RegexField(r"^key-[0-9a-z]+$", read_only=True)
    status = serializers.ChoiceField(ApiKeyStatus.choices, read_only=True)
    made_by = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The key or token that made it, with which it ends; null when an operator did.",
    )


class AccessTokenSerializer(CredentialSerializer):
    """An access token. Its secret is shown once, beside it, when it is minted."""

    id = serializers.RegexField(r"^tok-[0-9a-z]+$", read_only=True)
    kind = WordField(
        AccessToken.Kind.choices,
        default=AccessToken.Kind.PERSONAL,
        help_text="PERSONAL unless it is given.",
    )
    status = serializers.ChoiceField(AccessTokenStatus.choices, read_only=True)
    api_key_id = serializers.CharField(read_only=True, allow_null=True)
    ttl = SecondsField(
        minimum=dt.timedelta(seconds=1),
        maximum=actions.MAX_MINTED_LIFETIME,
        required=False,
        write_only=True,
        help_text="How long it lives, such as '3600s' or 3600; instead of expires_at.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse two ends."""
        if "ttl" in attrs and attrs.get("expires_at") is not None:
            raise ValidationError({"ttl": [ErrorDetail("Beside expires_at.", "both")]})
        return attrs


class RotationSerializer(StrictSerializer):
    """How a key is rotated."""

    grace_period = SecondsField(
        minimum=dt.timedelta(0),
        maximum=actions.MAX_GRACE_PERIOD,
        required=False,
        allow_null=True,
        help_text="How long the old secret still works, such as '3600s' or 3600; 0 unless said.",
    )


class CallerSerializer(serializers.Serializer[Any]):
    """The token that calls, and what it may do."""

    token_id = serializers.CharField()
    token_kind = serializers.CharField(source="kind.name")
    api_key_id = serializers.CharField(allow_null=True)
    scopes = serializers.ListField(child=serializers.CharField())
    binding = BindingSerializer(allow_null=True)
    expires_at = TimestampField(allow_null=True)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Return the fields, the scopes in their order."""
        shown = super().to_representation(instance)
        return {**shown, "scopes": sorted(shown["scopes"])}


class AuditEventSerializer(serializers.ModelSerializer[AuditEvent]):
    """One thing that somebody did."""

    class Meta:
        model = AuditEvent
        fields = [
            "id",
            "occurred_at",
            "action",
            "actor_id",
            "actor_name",
            "token_id",
            "resource_id",
            "address",
            "request_id",
            "client_request_id",
            "details",
        ]
        read_only_fields = fields
