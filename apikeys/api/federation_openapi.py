"""OpenAPI schema of issuers and trust policies."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
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
    error_docs,
    list_of,
    list_schema,
    request_example,
    update_mask,
    wrapped,
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


_ISSUER = wrapped("IssuerAnswer", "issuer", IssuerSerializer)
_ISSUER_MASK, _ISSUER_MASK_PARAMETER = update_mask(IssuerSerializer)
_ISSUER_CHANGE = wrapped(
    "UpdateIssuer", "issuer", IssuerSerializer, partial=True, update_mask=_ISSUER_MASK
)
_SHOWN_ISSUER = answer_example({"issuer": samples.ISSUER})

_POLICY = wrapped("TrustPolicyAnswer", "trust_policy", TrustPolicySerializer)
_POLICY_MASK, _POLICY_MASK_PARAMETER = update_mask(TrustPolicySerializer)
_POLICY_CHANGE = wrapped(
    "UpdateTrustPolicy",
    "trust_policy",
    TrustPolicySerializer,
    partial=True,
    update_mask=_POLICY_MASK,
)
_SHOWN_POLICY = answer_example({"trust_policy": samples.TRUST_POLICY})

issuers_schema = extend_schema_view(
    list=list_schema("issuer", "All issuers.", samples.ISSUER),
    retrieve=extend_schema(operation_id="get_issuer", responses=_ISSUER, examples=[_SHOWN_ISSUER]),
    create=extend_schema(
        operation_id="create_issuer",
        request=wrapped("CreateIssuer", "issuer", IssuerSerializer),
        responses={201: _ISSUER, **error_docs(BindingInsufficient, SecretRetired)},
        examples=[request_example({"issuer": samples.NEW_ISSUER}), _SHOWN_ISSUER],
    ),
    partial_update=extend_schema(
        operation_id="update_issuer",
        parameters=[_ISSUER_MASK_PARAMETER],
        request=_ISSUER_CHANGE,
        responses={
            200: _ISSUER,
            **error_docs(IssuerDisabled, IssuerShared, BindingInsufficient, SecretRetired),
        },
        examples=[
            request_example({"issuer": {"name": "example"}, "update_mask": "name"}),
            _SHOWN_ISSUER,
        ],
    ),
    disable=extend_schema(
        operation_id="disable_issuer",
        request=None,
        responses={200: _ISSUER, **error_docs(IssuerShared, BindingInsufficient, SecretRetired)},
        examples=[answer_example({"issuer": samples.DISABLED_ISSUER})],
    ),
)

trust_policies_schema = extend_schema_view(
    list=list_schema(
        "trust_policy",
        "The caller's own trust policies within the caller's binding.",
        samples.TRUST_POLICY,
        plural="trust_policies",
    ),
    retrieve=extend_schema(
        operation_id="get_trust_policy", responses=_POLICY, examples=[_SHOWN_POLICY]
    ),
    create=extend_schema(
        operation_id="create_trust_policy",
        request=wrapped("CreateTrustPolicy", "trust_policy", TrustPolicySerializer),
        responses={201: _POLICY, **error_docs(TrustPolicyTooWide, GrantExceeded, SecretRetired)},
        examples=[request_example({"trust_policy": samples.NEW_TRUST_POLICY}), _SHOWN_POLICY],
    ),
    partial_update=extend_schema(
        operation_id="update_trust_policy",
        parameters=[_POLICY_MASK_PARAMETER],
        request=_POLICY_CHANGE,
        responses={
            200: _POLICY,
            **error_docs(TrustPolicyDisabled, TrustPolicyTooWide, GrantExceeded, SecretRetired),
        },
        examples=[
            request_example({"trust_policy": {"name": "example"}, "update_mask": "name"}),
            _SHOWN_POLICY,
        ],
    ),
    disable=extend_schema(
        operation_id="disable_trust_policy",
        request=None,
        responses={200: _POLICY, **error_docs(SecretRetired)},
        examples=[answer_example({"trust_policy": samples.DISABLED_TRUST_POLICY})],
    ),
    test=extend_schema(
        operation_id="test_trust_policy",
        request=TrialSerializer,
        responses=TrialAnswerSerializer,
        examples=[request_example(samples.TRIAL), answer_example(samples.VERDICTS)],
    ),
)
