"""OpenAPI schema of issuers and trust policies."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers

from apikeys.api import samples
from apikeys.api.federation_serializers import (
    ConditionsField,
    IssuerSerializer,
    ObjectField,
    TrialSerializer,
    TrustPolicySerializer,
)
from apikeys.errors import BindingInsufficient, GrantExceeded, SecretRetired
from apikeys.federation import conditions
from apikeys.federation.errors import (
    IssuerDisabled,
    IssuerShared,
    TrustPolicyDisabled,
    TrustPolicyTooWide,
)
from infra_service.lib.api.fields import described
from infra_service.lib.api.openapi_words import (
    Named,
    answer_example,
    answer_of,
    error_docs,
    list_of,
    request_example,
    resource_schema,
)

_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": conditions.MAX_TEXT}
_CONDITION: Final = Named(
    "Condition",
    {
        "type": "object",
        "description": "A condition on a claim, with exactly one operator.",
        "required": ["claim"],
        "minProperties": 2,
        "maxProperties": 2,
        "additionalProperties": False,
        "properties": {
            "claim": {
                "type": "string",
                "description": "The name of the claim, such as repository_id, or a JSON Pointer "
                "with a leading slash.",
                "minLength": 1,
                "maxLength": conditions.MAX_NAME,
            },
            "equals": {**_TEXT, "description": "The only accepted value, as text."},
            "in": {
                **list_of(_TEXT),
                "description": "The accepted values, as text.",
                "minItems": 1,
                "maxItems": conditions.MAX_CHOICES,
            },
            "glob": {
                **_TEXT,
                "description": "A pattern: `*` matches any characters except `/` and `:`.",
            },
        },
    },
)
extend_schema_field({**list_of(_CONDITION), "minItems": 1, "maxItems": conditions.MAX_CONDITIONS})(
    ConditionsField
)
_OBJECT = {"type": "object", "additionalProperties": True, "description": "Any JSON object."}
extend_schema_field(_OBJECT, component_name="JsonObject")(ObjectField)


@extend_schema_field({})
class AnythingField(serializers.JSONField):
    """Any JSON value, including null."""


@described("The result of a condition for the claims of the tested token.")
class VerdictSerializer(serializers.Serializer[Any]):
    claim = serializers.CharField(help_text="The name of the claim, as in the policy.")
    wanted = ObjectField(help_text="The operator and its value.")
    had = AnythingField(help_text="The claim's value; null if the claim is missing.")
    met = serializers.BooleanField(help_text="Whether the claim meets the condition.")


@described("The result of a policy test. A test does not issue a token.")
class TrialAnswerSerializer(serializers.Serializer[Any]):
    would_be_given = serializers.BooleanField(help_text="Whether an exchange would succeed.")
    conditions = VerdictSerializer(
        many=True, help_text="The results, in the order of the policy's conditions."
    )
    refusals = serializers.ListField(
        child=serializers.CharField(),
        help_text="The reasons for a refusal other than unmet conditions.",
    )


issuers_schema = resource_schema(
    "issuer",
    "All issuers.",
    IssuerSerializer,
    samples.ISSUER,
    new=samples.NEW_ISSUER,
    create_errors=(BindingInsufficient, SecretRetired),
    change_errors=(IssuerDisabled, IssuerShared, BindingInsufficient, SecretRetired),
    disable=extend_schema(
        operation_id="disable_issuer",
        request=None,
        responses={
            200: answer_of("issuer", IssuerSerializer),
            **error_docs(IssuerShared, BindingInsufficient, SecretRetired),
        },
        examples=[answer_example({"issuer": samples.DISABLED_ISSUER})],
    ),
)

trust_policies_schema = resource_schema(
    "trust_policy",
    "The caller's own trust policies within the caller's binding.",
    TrustPolicySerializer,
    samples.TRUST_POLICY,
    plural="trust_policies",
    new=samples.NEW_TRUST_POLICY,
    create_errors=(TrustPolicyTooWide, GrantExceeded, SecretRetired),
    change_errors=(TrustPolicyDisabled, TrustPolicyTooWide, GrantExceeded, SecretRetired),
    disable=extend_schema(
        operation_id="disable_trust_policy",
        request=None,
        responses={
            200: answer_of("trust_policy", TrustPolicySerializer),
            **error_docs(SecretRetired),
        },
        examples=[answer_example({"trust_policy": samples.DISABLED_TRUST_POLICY})],
    ),
    test=extend_schema(
        operation_id="test_trust_policy",
        request=TrialSerializer,
        responses=TrialAnswerSerializer,
        examples=[request_example(samples.TRIAL), answer_example(samples.VERDICTS)],
    ),
)
