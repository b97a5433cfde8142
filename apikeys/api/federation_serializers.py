"""Serializers of issuers and trust policies."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from apikeys.api.binding_serializers import BindingSerializer, BoundSerializer, NetworksField
from apikeys.api.exchange_parameters import MAX_BYTES
from apikeys.api.serializers import ID, NAME, SCOPES, OwnerSerializer, RunField
from apikeys.federation import conditions, kinds
from apikeys.federation.keys import ALGORITHMS
from apikeys.models import Issuer, TrustPolicy
from apikeys.models.credentials import MAX_TOKEN_SECONDS
from apikeys.models.federation import MAX_ASSERTION_SECONDS
from apikeys.scopes import Scope
from infra_service.lib.api.fields import (
    StrictSerializer,
    TextField,
    TimestampField,
    WholeField,
    WordField,
    WordsField,
    described,
)

DISABLED_AT: Final = "Time at which it was permanently disabled; null while it is enabled."
UPDATED_AT: Final = "Time of the last change, not of the last use."


class ConditionsField(serializers.JSONField):
    """Conditions on claims; the field validates only their form."""

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
    """A JSON object."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise ValidationError("Not a JSON object.", code="invalid")
        return data


@described("An issuer of identity tokens that this service trusts, and where its keys are.")
class IssuerSerializer(StrictSerializer):
    id = serializers.RegexField(r"^iss-[0-9a-z]+$", read_only=True, help_text=ID)
    kind = WordField(Issuer.Kind.choices, help_text="The platform; it cannot be changed.")
    name = TextField(
        max_length=200, help_text="A display name; `manage.py trust` identifies issuers by it."
    )
    url = TextField(
        max_length=500,
        required=False,
        help_text="The exact value of the iss claim. The default is the issuer of the platform, if "
        "it has one.",
    )
    audience = TextField(
        max_length=500,
        help_text="The value of the aud claim. Request tokens for this audience only.",
    )
    jwks_url = TextField(
        max_length=500,
        required=False,
        allow_blank=True,
        help_text="Address of the key set; empty to use the address in the discovery document at "
        "the URL.",
    )
    inline_keys = ObjectField(
        required=False,
        allow_null=True,
        help_text="The keys as a JWK Set; the service then fetches no keys.",
    )
    ca = TextField(
        max_length=20_000,
        required=False,
        allow_blank=True,
        help_text="Certificates (PEM) to trust instead of the system's when the service fetches "
        "the keys.",
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
        help_text="Maximum lifetime of an assertion in seconds. Longer assertions are refused. The "
        "default is 3600.",
    )
    keys_fetched_at = TimestampField(
        source="key_set_fetched_at",
        read_only=True,
        allow_null=True,
        help_text="Time of the last successful fetch of the keys; null before the first.",
    )
    failures = serializers.IntegerField(
        read_only=True, help_text="Number of consecutive failures to fetch the keys."
    )
    disabled_at = TimestampField(read_only=True, allow_null=True, help_text=DISABLED_AT)
    created_at = TimestampField(read_only=True, help_text="Creation time.")
    updated_at = TimestampField(read_only=True, help_text=UPDATED_AT)


@described("A trust policy: the pipelines of an issuer that get a token, and its grant.")
class TrustPolicySerializer(BoundSerializer):
    id = serializers.RegexField(
        r"^fed-[0-9a-z]+$",
        read_only=True,
        help_text="Assigned by the service; pipelines send it as `client_id`. Not a secret.",
    )
    name = TextField(max_length=200, help_text=NAME)
    issuer_id = TextField(max_length=40, help_text="The issuer; it cannot be changed.")
    conditions = ConditionsField(help_text="Conditions on claims. All of them must be met.")
    scopes = WordsField(Scope.choices, code="unknown_scope", allow_empty=False, help_text=SCOPES)
    binding = BindingSerializer(
        required=False,
        allow_null=True,
        help_text="The binding of the tokens; null means everything. The default is the creator's "
        "binding.",
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
        help_text="Null means no expiry. The expiry is never later than that of the creator.",
    )
    owner = OwnerSerializer(read_only=True, help_text="The owner of the tokens.")
    made_by = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The parent key or token. Its revocation or expiry applies here too; null when "
        "an operator created the policy.",
    )
    last_used_at = TimestampField(
        read_only=True,
        allow_null=True,
        help_text="Time of the last exchange; null before the first.",
    )
    last_run = RunField(
        read_only=True,
        allow_null=True,
        help_text="Claims of the last token: jti, sub, repository, commit and run.",
    )
    disabled_at = TimestampField(read_only=True, allow_null=True, help_text=DISABLED_AT)
    created_at = TimestampField(read_only=True, help_text="Creation time.")
    updated_at = TimestampField(read_only=True, help_text=UPDATED_AT)
    warnings = serializers.SerializerMethodField(
        help_text="Allowed conditions that are weaker than they may seem."
    )

    def get_warnings(self, policy: TrustPolicy) -> list[str]:
        """Return warnings about the conditions for the author of the policy."""
        return kinds.policy_warnings(policy.issuer.kind, policy.conditions)


@described("The claims or the token for testing a trust policy.")
class TrialSerializer(StrictSerializer):
    claims = ObjectField(required=False, help_text="The claims of an assertion.")
    token = TextField(
        required=False,
        max_length=MAX_BYTES,
        help_text="Alternative to claims: a token of the platform, whose signature is verified. It "
        "can still be exchanged afterwards.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require exactly one of the fields."""
        if not attrs:
            raise ValidationError({"claims": [ErrorDetail("Or 'token'.", "required")]})
        if len(attrs) > 1:
            raise ValidationError(
                {"token": [ErrorDetail("Not allowed together with claims.", "both")]}
            )
        return attrs
