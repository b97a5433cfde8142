"""Serializers of issuers and trust policies."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from apikeys.api.binding_serializers import BindingSerializer, BoundSerializer, NetworksField
from apikeys.api.exchange_parameters import MAX_BYTES
from apikeys.api.serializers import ID, NAME, SCOPES, OwnerSerializer, RunField
from apikeys.federation import conditions, kinds
from apikeys.federation.key_formats import ALGORITHMS
from apikeys.models import Issuer, TrustPolicy
from apikeys.models.credentials import MAX_TOKEN_SECONDS
from apikeys.models.federation import MAX_ASSERTION_SECONDS
from apikeys.scopes import Scope
from infra_service.lib.api.fields import (
    NameField,
    StrictSerializer,
    TextField,
    TimestampField,
    WholeField,
    WordField,
    WordsField,
    described,
)

DISABLED_AT: Final = "Time at which the object was permanently disabled; null while it is enabled."
UPDATED_AT: Final = "Time of the last change. An exchange does not count as a change."


class ConditionsField(serializers.JSONField):
    """Conditions on claims. The field validates only the structure of the conditions."""

    def to_internal_value(self, data: Any) -> Any:
        found = conditions.faults(data)
        if "" in found:
            raise ValidationError([ErrorDetail(found[""], "invalid")])
        if found:
            raise ValidationError(
                {place: [ErrorDetail(found[place], "invalid")] for place in found}
            )
        return data


class ObjectField(serializers.JSONField):
    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise ValidationError("Not a JSON object.", code="invalid")
        return data


@described("A trusted issuer of identity tokens, and the source of its keys.")
class IssuerSerializer(StrictSerializer):
    id = serializers.RegexField(r"^iss-[0-9a-z]+$", read_only=True, help_text=ID)
    kind = WordField(
        Issuer.Kind.choices, help_text="The platform. This field cannot be changed after creation."
    )
    name = NameField(help_text="A display name, by which `manage.py trust` identifies issuers.")
    url = TextField(
        max_length=500,
        required=False,
        help_text="The exact value of the iss claim. The default is the fixed issuer URL of the "
        "platform, if one exists.",
    )
    audience = TextField(
        max_length=500,
        help_text="The exact value of the aud claim. Tokens with further audiences are refused.",
    )
    jwks_url = TextField(
        max_length=500,
        required=False,
        allow_blank=True,
        help_text="URL of the key set; empty to use the URL in the issuer's discovery document.",
    )
    inline_keys = ObjectField(
        required=False,
        allow_null=True,
        help_text="The keys as a JWK Set. The service then fetches no keys.",
    )
    ca = TextField(
        max_length=20_000,
        required=False,
        allow_blank=True,
        help_text="CA certificates (PEM) that replace the system's certificates when the service "
        "fetches the keys.",
    )
    algorithms = WordsField(
        [(name, name) for name in ALGORITHMS],
        code="unknown_value",
        allow_empty=False,
        required=False,
        help_text="The accepted signature algorithms; the default depends on the platform.",
    )
    max_assertion_seconds = WholeField(
        min_value=1,
        max_value=MAX_ASSERTION_SECONDS,
        required=False,
        help_text="Maximum lifetime of an assertion in seconds. The service rejects assertions "
        "with a longer lifetime. The default is 3600.",
    )
    keys_fetched_at = TimestampField(
        source="key_set_fetched_at",
        read_only=True,
        allow_null=True,
        help_text="Time of the last successful fetch of the keys; null before the first fetch, and "
        "after a change to the source of the keys.",
    )
    failures = serializers.IntegerField(
        read_only=True, help_text="Number of consecutive failures to fetch the keys."
    )
    disabled_at = TimestampField(read_only=True, allow_null=True, help_text=DISABLED_AT)
    created_at = TimestampField(read_only=True, help_text="Creation time.")
    updated_at = TimestampField(read_only=True, help_text=UPDATED_AT)


@described(
    "A trust policy: the pipelines that can obtain tokens, and the permissions of these tokens."
)
class TrustPolicySerializer(BoundSerializer):
    id = serializers.RegexField(
        r"^fed-[0-9a-z]+$",
        read_only=True,
        help_text="Assigned by the service. Pipelines send the id as `client_id`. Not a secret.",
    )
    name = NameField(help_text=NAME)
    issuer_id = TextField(
        max_length=40,
        help_text="The id of the issuer. This field cannot be changed after creation.",
    )
    conditions = ConditionsField(help_text="Conditions on claims, all of which must be met.")
    scopes = WordsField(Scope.choices, code="unknown_scope", allow_empty=False, help_text=SCOPES)
    binding = BindingSerializer(
        required=False,
        allow_null=True,
        help_text="The binding of the tokens; null means no restriction. The default is the "
        "creator's binding.",
    )
    allowed_networks = NetworksField()
    max_token_seconds = WholeField(
        min_value=1,
        max_value=MAX_TOKEN_SECONDS,
        required=False,
        help_text="Maximum lifetime of a token in seconds. The default is 3600.",
    )
    expires_at = TimestampField(
        in_future=True,
        required=False,
        allow_null=True,
        help_text="Null means no expiry. The default, and the latest expiry, is the creator's.",
    )
    owner = OwnerSerializer(read_only=True, help_text="The owner of the tokens.")
    made_by = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The parent key or token; null if an operator created the policy. The policy "
        "becomes unusable when the parent is revoked or expires.",
    )
    last_used_at = TimestampField(
        read_only=True,
        allow_null=True,
        help_text="Time of the last exchange; null before the first exchange.",
    )
    last_run = RunField(
        read_only=True,
        allow_null=True,
        help_text="Claims of the last exchanged token: jti, sub, repository, commit and run.",
    )
    disabled_at = TimestampField(read_only=True, allow_null=True, help_text=DISABLED_AT)
    created_at = TimestampField(read_only=True, help_text="Creation time.")
    updated_at = TimestampField(read_only=True, help_text=UPDATED_AT)
    warnings = serializers.SerializerMethodField(
        help_text="Warnings about conditions that are allowed but weaker than they seem."
    )

    def get_warnings(self, policy: TrustPolicy) -> list[str]:
        """Return warnings about weak conditions, for the author of the policy."""
        return kinds.policy_warnings(policy.issuer.kind, policy.conditions)


@described("The input for a test of a trust policy: claims or a token.")
class TrialSerializer(StrictSerializer):
    claims = ObjectField(required=False, help_text="The claims of an assertion.")
    token = TextField(
        required=False,
        max_length=MAX_BYTES,
        help_text="A token of the platform, as an alternative to claims. The service verifies the "
        "signature. A test does not use up the token.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require exactly one of ``claims`` and ``token``."""
        if not attrs:
            raise ValidationError({"claims": [ErrorDetail("Specify claims or token.", "required")]})
        if len(attrs) > 1:
            raise ValidationError(
                {"token": [ErrorDetail("Specify claims or token, not both.", "both")]}
            )
        return attrs
