from __future__ import annotations

import datetime as dt
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from apikeys import actions
from apikeys.api.binding_serializers import BindingSerializer, BoundSerializer, NetworksField
from apikeys.models import AccessToken, AuditEvent
from apikeys.querysets import AccessTokenStatus, ApiKeyStatus
from apikeys.scopes import Scope
from apikeys.usability import UnusableReason
from infra_service.lib.api.fields import (
    SecondsField,
    StrictSerializer,
    TextField,
    TimestampField,
    WordField,
    WordsField,
    described,
)


@described("The user who created a key or a token.")
class OwnerSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(read_only=True)
    display_name = serializers.CharField(read_only=True)
    email = serializers.CharField(read_only=True)


class CredentialSerializer(BoundSerializer):
    """Shared fields of keys and tokens."""

    id = serializers.CharField(read_only=True)
    name = TextField(max_length=200)
    scopes = WordsField(Scope.choices, code="unknown_scope", allow_empty=False)
    binding = BindingSerializer(
        required=False,
        allow_null=True,
        help_text="Where it works; null is everywhere. Unless said, where the creator works.",
    )
    allowed_networks = NetworksField()
    expires_at = TimestampField(
        in_future=True,
        required=False,
        allow_null=True,
        help_text="Null is never; nothing ends later than what made it.",
    )
    unusable_reason = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text=f"The reason for which it is refused, of {', '.join(UnusableReason)}; "
        "null while it works.",
    )
    last_used_at = TimestampField(read_only=True, allow_null=True)
    last_used_address = serializers.CharField(
        read_only=True, allow_null=True, help_text="The client's address at `last_used_at`."
    )
    revoked_at = TimestampField(read_only=True, allow_null=True)
    created_by = OwnerSerializer(read_only=True)
    created_at = TimestampField(read_only=True)


@described("An API key. Its secret is shown once, beside it, when it is created or rotated.")
class ApiKeySerializer(CredentialSerializer):
    id = serializers.RegexField(r"^key-[0-9a-z]+$", read_only=True)
    status = serializers.ChoiceField(ApiKeyStatus.choices, read_only=True)
    made_by = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The key or token that made it, with which it ends; null when an operator did.",
    )
    old_secret_expires_at = TimestampField(
        read_only=True,
        allow_null=True,
        help_text="Until when the secret before the last rotation works; null when it does not.",
    )


class RunField(serializers.JSONField):
    """The run of a pipeline, as described by its platform."""


@described("An access token. Its secret is shown once, beside it, when it is minted.")
class AccessTokenSerializer(CredentialSerializer):
    id = serializers.RegexField(r"^tok-[0-9a-z]+$", read_only=True)
    kind = WordField(
        AccessToken.Kind.choices,
        default=AccessToken.Kind.PERSONAL,
        help_text="PERSONAL unless it is given.",
    )
    status = serializers.ChoiceField(AccessTokenStatus.choices, read_only=True)
    api_key_id = serializers.CharField(read_only=True, allow_null=True)
    trust_policy_id = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The trust policy by which a pipeline got it; null for all others.",
    )
    run = RunField(
        read_only=True,
        allow_null=True,
        help_text="What the pipeline's platform said: jti, sub, repository, commit, run.",
    )
    ttl = SecondsField(
        minimum=dt.timedelta(seconds=1),
        maximum=actions.MAX_MINTED_LIFETIME,
        required=False,
        write_only=True,
        help_text="How long it lives, such as '3600s' or 3600; instead of expires_at.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse two expiries."""
        if "ttl" in attrs and attrs.get("expires_at") is not None:
            raise ValidationError({"ttl": [ErrorDetail("Beside expires_at.", "both")]})
        return attrs


@described("The options of rotating a key.")
class RotationSerializer(StrictSerializer):
    grace_period = SecondsField(
        minimum=dt.timedelta(0),
        maximum=actions.MAX_GRACE_PERIOD,
        required=False,
        allow_null=True,
        help_text="How long the old secret still works, such as '3600s' or 3600; 0 unless said.",
    )


@described("The token that calls, and what it may do.")
class CallerSerializer(serializers.Serializer[Any]):
    token_id = serializers.CharField()
    token_kind = serializers.CharField(source="kind.name")
    api_key_id = serializers.CharField(allow_null=True)
    trust_policy_id = serializers.CharField(allow_null=True)
    scopes = serializers.ListField(child=serializers.CharField())
    binding = BindingSerializer(allow_null=True)
    expires_at = TimestampField(allow_null=True)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Return the fields, with the scopes in order."""
        shown = super().to_representation(instance)
        return {**shown, "scopes": sorted(shown["scopes"])}


@described("One event of the audit trail: who did what, to what, and when.")
class AuditEventSerializer(serializers.ModelSerializer[AuditEvent]):
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
