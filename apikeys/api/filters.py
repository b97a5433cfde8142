"""Filters of the lists of keys, tokens, issuers and policies."""

from django_filters import CharFilter, FilterSet, IsoDateTimeFilter, UUIDFilter

from apikeys.models import AccessToken, ApiKey, AuditEvent, Issuer, TrustPolicy
from apikeys.querysets import AccessTokenStatus, ApiKeyStatus
from apikeys.usability import UnusableReason
from filterlang.filters import EnumFilter, IdentifierFilter


class ApiKeyFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """The filterable fields of API keys. The list includes expired and revoked keys."""

    id = IdentifierFilter()
    status = EnumFilter(choices=ApiKeyStatus.choices, prefix="API_KEY_STATUS_")
    unusable_reason = EnumFilter(choices=UnusableReason.choices, nullable=True)
    name = CharFilter()
    scopes = CharFilter(field_name="scopes_text")
    made_by = IdentifierFilter(field_name="made_by_id", nullable=True)
    created_at = IsoDateTimeFilter()
    expires_at = IsoDateTimeFilter()
    last_used_at = IsoDateTimeFilter()
    revoked_at = IsoDateTimeFilter()

    class Meta:
        model = ApiKey
        fields = ()


class AccessTokenFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    id = IdentifierFilter()
    status = EnumFilter(choices=AccessTokenStatus.choices, prefix="ACCESS_TOKEN_STATUS_")
    unusable_reason = EnumFilter(choices=UnusableReason.choices, nullable=True)
    name = CharFilter()
    scopes = CharFilter(field_name="scopes_text")
    kind = EnumFilter(choices=AccessToken.Kind.choices)
    # A filter on the key's own column, because a foreign key has no text lookups.
    api_key_id = CharFilter(field_name="api_key__id")
    trust_policy_id = CharFilter(field_name="trust_policy__id")
    created_at = IsoDateTimeFilter()
    expires_at = IsoDateTimeFilter()
    last_used_at = IsoDateTimeFilter()
    revoked_at = IsoDateTimeFilter()

    class Meta:
        model = AccessToken
        fields = ()


class AuditEventFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    action = CharFilter()
    actor_id = UUIDFilter()
    actor_name = CharFilter()
    token_id = CharFilter()
    resource_id = CharFilter()
    request_id = CharFilter()
    trace_id = IdentifierFilter(field_name="details__trace_id", nullable=True)
    occurred_at = IsoDateTimeFilter()

    class Meta:
        model = AuditEvent
        fields = ()


class IssuerFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    kind = EnumFilter(choices=Issuer.Kind.choices)
    name = CharFilter()
    url = CharFilter()
    created_at = IsoDateTimeFilter()

    class Meta:
        model = Issuer
        fields = ()


class TrustPolicyFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    # A filter on the issuer's own column, because a foreign key has no text lookups.
    issuer_id = CharFilter(field_name="issuer__id")
    name = CharFilter()
    created_at = IsoDateTimeFilter()
    expires_at = IsoDateTimeFilter()
    last_used_at = IsoDateTimeFilter()

    class Meta:
        model = TrustPolicy
        fields = ()
