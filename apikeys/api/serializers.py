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


@described("The user that created a key or a token.")
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
        help_text="The binding; null is everywhere. The default is the binding of the creator.",
    )
    allowed_networks = NetworksField()
    expires_at = TimestampField(
        in_future=True,
        required=False,
        allow_null=True,
        help_text="Null is no expiry. The expiry is never later than that of the creator.",
    )
    unusable_reason = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text=f"The reason for refusals, of {', '.join(UnusableReason)}; null while the "
        "credential works.",
    )
    last_used_at = TimestampField(read_only=True, allow_null=True)
    last_used_address = serializers.CharField(
        read_only=True, allow_null=True, help_text="The client's address at `last_used_at`."
    )
    revoked_at = TimestampField(read_only=True, allow_null=True)
    created_by = OwnerSerializer(read_only=True)
    created_at = TimestampField(read_only=True)


@described("An API key. Its secret is returned once, on creation or rotation.")
class ApiKeySerializer(CredentialSerializer):
    id = serializers.RegexField(r"^key-[0-9a-z]+$", read_only=True)
    status = serializers.ChoiceField(ApiKeyStatus.choices, read_only=True)
    made_by = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The parent key or token. Its revocation or expiry applies here too; null when "
        "an operator created the key.",
    )
    old_secret_expires_at = TimestampField(
        read_only=True,
        allow_null=True,
        help_text="Expiry of the secret before the last rotation; null when it does not work.",
    )


class RunField(serializers.JSONField):
    """The run of a pipeline, as described by its platform."""


@described("An access token. Its secret is returned once, when the token is minted.")
class AccessTokenSerializer(CredentialSerializer):
    id = serializers.RegexField(r"^tok-[0-9a-z]+$", read_only=True)
    kind = WordField(
        AccessToken.Kind.choices,
        default=AccessToken.Kind.PERSONAL,
        help_text="The default is PERSONAL.",
    )
    status = serializers.ChoiceField(AccessTokenStatus.choices, read_only=True)
    api_key_id = serializers.CharField(read_only=True, allow_null=True)
    trust_policy_id = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The trust policy that issued it to a pipeline; null for other tokens.",
    )
    run = RunField(
        read_only=True,
        allow_null=True,
        help_text="Claims of the pipeline's platform: jti, sub, repository, commit, run.",
    )
    ttl = SecondsField(
        minimum=dt.timedelta(seconds=1),
        maximum=actions.MAX_MINTED_LIFETIME,
        required=False,
        write_only=True,
        help_text="Lifetime, such as '3600s' or 3600; instead of expires_at.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse two expiries."""
        if "ttl" in attrs and attrs.get("expires_at") is not None:
            raise ValidationError({"ttl": [ErrorDetail("Beside expires_at.", "both")]})
        return attrs


@described("Options of a key rotation.")
class RotationSerializer(StrictSerializer):
    grace_period = SecondsField(
        minimum=dt.timedelta(0),
        maximum=actions.MAX_GRACE_PERIOD,
        required=False,
        allow_null=True,
        help_text="Grace period of the old secret, such as '3600s' or 3600. The default is 0.",
    )


@described("The token of the request, and its grant.")
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


@described("An event of the audit log: the actor, the action, the object and the time.")
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
