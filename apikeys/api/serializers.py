from __future__ import annotations

import datetime as dt
from typing import Any, ClassVar, Final

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from apikeys import actions
from apikeys.api.binding_serializers import BindingSerializer, BoundSerializer, NetworksField
from apikeys.models import AccessToken, AuditEvent
from apikeys.querysets import AccessTokenStatus, ApiKeyStatus
from apikeys.scopes import Scope
from apikeys.tokens import TokenKind
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

#: Descriptions of fields that keys, tokens and trust policies share.
ID: Final = "Assigned by the service, in the order of creation."
NAME: Final = "A display name; it need not be unique."
SCOPES: Final = "The permissions. The creator must have each of them."
STATUS: Final = "Computed at the time of the response."


@described("A user: the owner of a key, a token or a trust policy.")
class OwnerSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(read_only=True, help_text="A UUID, the `actor_id` in the audit log.")
    display_name = serializers.CharField(read_only=True, help_text="A display name; may be empty.")
    email = serializers.CharField(read_only=True, help_text="The email address; may be empty.")


class CredentialSerializer(BoundSerializer):
    """Shared fields of keys and tokens."""

    id = serializers.CharField(read_only=True)
    name = TextField(max_length=200, help_text=NAME)
    scopes = WordsField(Scope.choices, code="unknown_scope", allow_empty=False, help_text=SCOPES)
    binding = BindingSerializer(
        required=False,
        allow_null=True,
        help_text="The binding; null means everything. The default is the creator's binding.",
    )
    allowed_networks = NetworksField()
    expires_at = TimestampField(
        in_future=True,
        required=False,
        allow_null=True,
        help_text="Null means no expiry. The expiry is never later than that of the creator.",
    )
    unusable_reason = serializers.ChoiceField(
        UnusableReason.choices,
        read_only=True,
        allow_null=True,
        help_text="Why the credential is refused; null while it works.",
    )
    last_used_at = TimestampField(
        read_only=True,
        allow_null=True,
        help_text="Time of the last accepted request, to the minute; null before the first.",
    )
    last_used_address = serializers.CharField(
        read_only=True, allow_null=True, help_text="The client's address at `last_used_at`."
    )
    revoked_at = TimestampField(
        read_only=True,
        allow_null=True,
        help_text="Time of the revocation, which is permanent; null if it was not revoked.",
    )
    created_by = OwnerSerializer(
        read_only=True, help_text="The owner, even if an operator created it."
    )
    created_at = TimestampField(read_only=True, help_text="Creation time.")


@described("An API key. Its secret is returned once, on creation or rotation.")
class ApiKeySerializer(CredentialSerializer):
    id = serializers.RegexField(r"^key-[0-9a-z]+$", read_only=True, help_text=ID)
    status = serializers.ChoiceField(ApiKeyStatus.choices, read_only=True, help_text=STATUS)
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
    id = serializers.RegexField(r"^tok-[0-9a-z]+$", read_only=True, help_text=ID)
    kind = WordField(
        AccessToken.Kind.choices,
        default=AccessToken.Kind.PERSONAL,
        help_text="The kind of token; the default is PERSONAL.",
    )
    status = serializers.ChoiceField(AccessTokenStatus.choices, read_only=True, help_text=STATUS)
    api_key_id = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The API key that minted it; null for tokens of pipelines and operators.",
    )
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
            raise ValidationError(
                {"ttl": [ErrorDetail("Specify ttl or expires_at, not both.", "both")]}
            )
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


TOKEN_KINDS: Final = [kind.name for kind in TokenKind]


@described("The token of the request, and its grant.")
class CallerSerializer(serializers.Serializer[Any]):
    token_id = serializers.CharField(help_text="`tok-…`, or `key-…` of an API key.")
    token_kind = serializers.ChoiceField(
        TOKEN_KINDS, source="kind.name", help_text="The kind of token that was sent."
    )
    api_key_id = serializers.CharField(
        allow_null=True, help_text="The API key that was sent, or that minted the token."
    )
    trust_policy_id = serializers.CharField(
        allow_null=True, help_text="The trust policy that issued the token to a pipeline."
    )
    scopes = serializers.ListField(
        child=serializers.ChoiceField(Scope.choices),
        help_text="The scopes that apply now, in order.",
    )
    binding = BindingSerializer(
        allow_null=True, help_text="The binding that applies now; null means everything."
    )
    expires_at = TimestampField(
        allow_null=True,
        help_text="The earlier expiry of the token and its API key; null means no expiry.",
    )

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Return the fields, with the scopes in order."""
        shown = super().to_representation(instance)
        return {**shown, "scopes": sorted(shown["scopes"])}


@described("An event of the audit log: the actor, the action, the object and the time.")
class AuditEventSerializer(serializers.ModelSerializer[AuditEvent]):
    trace_id = serializers.CharField(
        source="details.trace_id",
        read_only=True,
        allow_null=True,
        help_text="The trace id in the header `traceparent` of the request; null without it.",
    )
    details = serializers.DictField(
        read_only=True, help_text="Further values, which depend on `action`."
    )

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
            "trace_id",
            "details",
        ]
        read_only_fields = fields
        extra_kwargs: ClassVar = {
            "id": {"help_text": "A UUID; ids are in the order of the events."},
            "occurred_at": {"help_text": "Time of the action, by the clock of the service."},
            "action": {"help_text": "The resource and the verb, such as state.push."},
            "actor_id": {"help_text": "The user; null for commands and unknown users."},
            "actor_name": {
                "help_text": "The user's name at that time, or `command` and the command's name."
            },
            "token_id": {"help_text": "The token or key of the request, or empty."},
            "resource_id": {"help_text": "The id of the changed or read resource."},
            "address": {"help_text": "The client's IP address; null for a command."},
            "request_id": {"help_text": "`X-Request-ID` of the response; empty for a command."},
            "client_request_id": {
                "help_text": "`X-Request-ID` of the request, or empty; not always unique."
            },
        }
