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
    NameField,
    SecondsField,
    StrictSerializer,
    TimestampField,
    WordField,
    WordsField,
    described,
)

#: Descriptions of fields that keys, tokens and trust policies share.
ID: Final = "Assigned by the service. Ids sort in the order of creation."
NAME: Final = "A display name, which need not be unique."
SCOPES: Final = "The permissions. The creator must have all of them."
STATUS: Final = "The status at the time of the response."


@described("A user: the owner of a key, a token or a trust policy.")
class OwnerSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(
        read_only=True,
        help_text="The UUID of the user, which the audit log contains as `actor_id`.",
    )
    display_name = serializers.CharField(read_only=True, help_text="A display name; may be empty.")
    email = serializers.CharField(read_only=True, help_text="The email address; may be empty.")


class CredentialSerializer(BoundSerializer):
    """Shared fields of keys and tokens."""

    id = serializers.CharField(read_only=True)
    name = NameField(help_text=NAME)
    scopes = WordsField(Scope.choices, code="unknown_scope", allow_empty=False, help_text=SCOPES)
    binding = BindingSerializer(
        required=False,
        allow_null=True,
        help_text="The binding; null means no restriction. The default is the creator's binding.",
    )
    allowed_networks = NetworksField()
    expires_at = TimestampField(
        in_future=True,
        required=False,
        allow_null=True,
        help_text="Null means no expiry. The default, and the latest expiry, is the creator's.",
    )
    unusable_reason = serializers.ChoiceField(
        UnusableReason.choices,
        read_only=True,
        allow_null=True,
        help_text="The reason why the service rejects the credential; null while it is usable.",
    )
    last_used_at = TimestampField(
        read_only=True,
        allow_null=True,
        help_text="Time of the last recorded use; null before the first. The service records at "
        "most one use a minute.",
    )
    last_used_address = serializers.CharField(
        read_only=True, allow_null=True, help_text="The client's address at `last_used_at`."
    )
    revoked_at = TimestampField(
        read_only=True,
        allow_null=True,
        help_text="Time of the revocation, which is permanent; null if the credential was not "
        "revoked.",
    )
    created_by = OwnerSerializer(
        read_only=True, help_text="The owner, even if an operator created the credential."
    )
    created_at = TimestampField(read_only=True, help_text="Creation time.")


@described("An API key. Its secret is returned once, on creation or rotation.")
class ApiKeySerializer(CredentialSerializer):
    id = serializers.RegexField(r"^key-[0-9a-z]+$", read_only=True, help_text=ID)
    status = serializers.ChoiceField(ApiKeyStatus.choices, read_only=True, help_text=STATUS)
    made_by = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The parent key or token; null if an operator created the key. The key becomes "
        "unusable when the parent is revoked or expires.",
    )
    old_secret_expires_at = TimestampField(
        read_only=True,
        allow_null=True,
        help_text="Expiry of the previous secret; null if no previous secret is valid.",
    )


class RunField(serializers.JSONField):
    """The run of a pipeline, as described by its platform."""


@described("An access token. Its secret is returned once, when the token is issued.")
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
        help_text="The API key that minted the token; null if no key minted it.",
    )
    trust_policy_id = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The trust policy that issued the token to a pipeline; null for other tokens.",
    )
    run = RunField(
        read_only=True,
        allow_null=True,
        help_text="Claims of the exchanged token: jti, sub, repository, commit and run; null for "
        "other tokens.",
    )
    ttl = SecondsField(
        minimum=dt.timedelta(seconds=1),
        maximum=actions.MAX_MINTED_LIFETIME,
        required=False,
        write_only=True,
        help_text="Lifetime, such as '3600s' or 3600, as an alternative to expires_at. The default "
        "is an hour, or the remaining lifetime of the key if it is shorter.",
    )
    expires_at = TimestampField(
        in_future=True,
        required=False,
        allow_null=True,
        help_text="An alternative to ttl: at most 12 hours ahead, and not after the key's expiry. "
        "Null in a response means no expiry.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse both ``ttl`` and ``expires_at``."""
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
    token_id = serializers.CharField(
        help_text="The id of the access token (`tok-…`) or API key (`key-…`)."
    )
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
        help_text="The effective scopes, in alphabetical order.",
    )
    binding = BindingSerializer(
        allow_null=True, help_text="The effective binding; null means no restriction."
    )
    expires_at = TimestampField(
        allow_null=True,
        help_text="The expiry of the token or of its API key, whichever is earlier; null means no "
        "expiry.",
    )

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Return the fields, with sorted scopes."""
        shown = super().to_representation(instance)
        return {**shown, "scopes": sorted(shown["scopes"])}


@described("An event of the audit log: the actor, the action, the object and the time.")
class AuditEventSerializer(serializers.ModelSerializer[AuditEvent]):
    trace_id = serializers.CharField(
        source="details.trace_id",
        read_only=True,
        allow_null=True,
        help_text="The trace id in the `traceparent` header of the request; null if the request "
        "had no such header.",
    )
    details = serializers.DictField(
        read_only=True, help_text="Additional values, which depend on `action`."
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
            "id": {"help_text": "A UUID. Ids sort in the order of the events."},
            "occurred_at": {"help_text": "Time of the action, according to the service's clock."},
            "action": {"help_text": "The resource and the verb, such as state.push."},
            "actor_id": {"help_text": "The id of the user; null for commands and unknown users."},
            "actor_name": {
                "help_text": "The user's name at the time of the action. For a command, `command` "
                "and its name."
            },
            "token_id": {
                "help_text": "The id of the token or key of the request; otherwise empty."
            },
            "resource_id": {"help_text": "The id of the changed or read resource."},
            "address": {"help_text": "The client's IP address; null for a command."},
            "request_id": {"help_text": "`X-Request-ID` of the response; empty for a command."},
            "client_request_id": {
                "help_text": "`X-Request-ID` of the request, or empty. Clients may reuse a value."
            },
        }
