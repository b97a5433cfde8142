"""Issuers, trust policies and used assertions.

A pipeline exchanges the signed token of its platform, an assertion, for an access token. The
pipeline stores no secret of this service.
"""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models import Q
from django.utils import timezone

from apikeys.identifiers import issuer_id, trust_policy_id
from apikeys.models.credentials import MAX_TOKEN_SECONDS, ApiKey
from apikeys.models.grant_holder import GrantHolder
from apikeys.querysets import IssuerQuerySet, TrustPolicyQuerySet

MAX_ASSERTION_SECONDS: Final = 24 * 60 * 60


def usual_algorithms() -> list[str]:
    """Return the default signature algorithms of an issuer."""
    return ["RS256", "ES256"]


class Issuer(models.Model):
    """A platform with signatures that the service trusts, its ``iss`` claim and its keys.

    Several issuers may share a ``url``, such as Kubernetes clusters with the same name. Such
    issuers differ in their keys.
    """

    class Kind(models.TextChoices):
        """The platform, which determines the available claims and the claims that policies pin."""

        GITHUB = "GITHUB", "GitHub Actions"
        GITLAB = "GITLAB", "GitLab"
        KUBERNETES = "KUBERNETES", "Kubernetes"
        BUILDKITE = "BUILDKITE", "Buildkite"
        CIRCLECI = "CIRCLECI", "CircleCI"
        CUSTOM = "CUSTOM", "Custom"

    id = models.CharField(primary_key=True, max_length=40, default=issuer_id, editable=False)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    name = models.CharField(max_length=200, blank=True)
    # Compared with ``iss`` byte for byte.
    url = models.CharField(max_length=500)
    audience = models.CharField(max_length=500)
    # The source of the keys: inline, a URL, or the discovery document at ``url``.
    inline_keys = models.JSONField(null=True, blank=True)
    jwks_url = models.CharField(max_length=500, blank=True)
    # CA certificates (PEM) for requests to the issuer, instead of the system's certificates.
    ca = models.TextField(blank=True)
    algorithms = models.JSONField(default=usual_algorithms)
    # The maximum lifetime of an assertion, from ``iat`` to ``exp``.
    max_assertion_seconds = models.PositiveIntegerField(default=60 * 60)
    # The last fetched keys and their time. Keys of an unreachable issuer work for a day.
    key_set = models.JSONField(null=True, editable=False)
    key_set_fetched_at = models.DateTimeField(null=True, editable=False)
    # The start and end of the last fetch, and the number of consecutive failures.
    key_set_asked_at = models.DateTimeField(null=True, editable=False)
    key_set_settled_at = models.DateTimeField(null=True, editable=False)
    failures = models.PositiveIntegerField(default=0, editable=False)
    revision = models.PositiveIntegerField(default=0, editable=False)
    disabled_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = IssuerQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(name="issuer_id_form", condition=Q(id__startswith="iss-")),
            models.CheckConstraint(
                name="issuer_kind_known",
                condition=Q(
                    kind__in=["GITHUB", "GITLAB", "KUBERNETES", "BUILDKITE", "CIRCLECI", "CUSTOM"]
                ),
            ),
            models.CheckConstraint(
                name="issuer_url_is_https",
                # Some clusters have another issuer name, which requires inline keys.
                condition=Q(url__startswith="https://")
                | (Q(inline_keys__isnull=False) & ~Q(url="")),
            ),
            models.CheckConstraint(
                name="issuer_jwks_url_is_https",
                condition=Q(jwks_url="") | Q(jwks_url__startswith="https://"),
            ),
            # Without an audience, the service would accept tokens for other services.
            models.CheckConstraint(name="issuer_audience_present", condition=~Q(audience="")),
            models.CheckConstraint(
                name="issuer_keys_from_one_place",
                condition=Q(inline_keys__isnull=True) | Q(jwks_url=""),
            ),
            models.CheckConstraint(
                name="issuer_assertions_end",
                condition=Q(
                    max_assertion_seconds__gte=1, max_assertion_seconds__lte=MAX_ASSERTION_SECONDS
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name or self.url} ({self.pk})"


class TrustPolicy(GrantHolder):
    """A policy that trusts some of an issuer's pipelines and grants them tokens."""

    id = models.CharField(primary_key=True, max_length=40, default=trust_policy_id, editable=False)
    issuer = models.ForeignKey(Issuer, on_delete=models.PROTECT, related_name="policies")
    # The machine account that owns the tokens.
    owner = models.ForeignKey(
        "apikeys.User", on_delete=models.PROTECT, related_name="trust_policies", db_index=False
    )
    # Conditions, all of which must be met: {"claim": …, "equals" | "in" | "glob": …}.
    conditions = models.JSONField(default=list)
    max_token_seconds = models.PositiveIntegerField(default=60 * 60)
    disabled_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Claims of the last assertion: jti, sub, repository, commit and run.
    last_run = models.JSONField(null=True, editable=False)
    # Null if a command created the policy.
    created_by = models.ForeignKey(
        "apikeys.User", on_delete=models.PROTECT, related_name="+", null=True, db_index=False
    )
    # The key, and the token by value, that created the policy. The policy never exceeds their
    # grants, and is disabled when they are revoked. Empty if an operator created the policy.
    maker = models.ForeignKey(
        ApiKey, on_delete=models.PROTECT, related_name="trust_policies", null=True, db_index=False
    )
    maker_token_id = models.CharField(max_length=40, blank=True, default="")
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = TrustPolicyQuerySet.as_manager()

    class Meta(GrantHolder.Meta):
        verbose_name_plural = "trust policies"
        constraints = [
            *GrantHolder.Meta.constraints,
            models.CheckConstraint(name="trustpolicy_id_form", condition=Q(id__startswith="fed-")),
            models.CheckConstraint(
                name="trustpolicy_conditions_present", condition=~Q(conditions=[])
            ),
            models.CheckConstraint(
                name="trustpolicy_tokens_end",
                condition=Q(max_token_seconds__gte=1, max_token_seconds__lte=MAX_TOKEN_SECONDS),
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "id"], name="trustpolicy_of_owner"),
            # For a revocation, which includes the descendants of a key or token.
            models.Index(
                fields=["maker"],
                name="trustpolicy_by_maker",
                condition=Q(disabled_at=None, maker__isnull=False),
            ),
            models.Index(
                fields=["maker_token_id"],
                name="trustpolicy_by_maker_token",
                condition=Q(disabled_at=None) & ~Q(maker_token_id=""),
            ),
        ]

    @property
    def made_by(self) -> str | None:
        """Return the id of the key or token that created the policy; None for an operator."""
        return self.maker_token_id or self.maker_id


class UsedAssertion(models.Model):
    """A used assertion, stored until its expiry, because it can be exchanged only once."""

    # SHA-256 of ``iss`` and ``jti``; without ``jti``, of ``iss`` and the signed part.
    digest = models.BinaryField(max_length=32, primary_key=True)
    expires_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["expires_at"], name="usedassertion_by_expiry")]

    def __str__(self) -> str:
        return f"an assertion until {self.expires_at}"
