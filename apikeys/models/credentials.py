from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Length
from django.db.models.lookups import Exact

from apikeys.identifiers import access_token_id, api_key_id
from apikeys.models.grant_holder import GrantHolder
from apikeys.querysets import AccessTokenQuerySet, ApiKeyQuerySet

if TYPE_CHECKING:
    import datetime as dt

#: The maximum lifetime of a token, whether a key mints it or a policy issues it.
MAX_TOKEN_SECONDS: Final = 12 * 60 * 60


class Credential(GrantHolder):
    """Shared fields of API keys and access tokens. The secret itself is never stored."""

    digest = models.BinaryField(max_length=32, unique=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    # The client's address at ``last_used_at``.
    last_used_address = models.GenericIPAddressField(null=True, blank=True, editable=False)

    class Meta(GrantHolder.Meta):
        abstract = True
        constraints = [
            *GrantHolder.Meta.constraints,
            models.CheckConstraint(
                name="%(class)s_digest_is_sha256",
                condition=Exact(Length(F("digest")), 32),
            ),
        ]
        indexes = [
            models.Index(fields=["created_by", "id"], name="%(class)s_of_owner"),
            models.Index(fields=["created_by", "last_used_at", "id"], name="%(class)s_by_use"),
            # For the admin: credentials that expire soon, or have expired.
            models.Index(
                fields=["expires_at", "id"],
                name="%(class)s_by_end",
                condition=Q(revoked_at=None, expires_at__isnull=False),
            ),
            models.Index(
                fields=["-id"], name="%(class)s_revoked", condition=Q(revoked_at__isnull=False)
            ),
        ]

    @property
    def expiry(self) -> dt.datetime | None:
        """Return the expiry; None means no expiry."""
        return self.expires_at


class ApiKey(Credential):
    """A long-lived key, from which its owner mints access tokens."""

    id = models.CharField(primary_key=True, max_length=40, default=api_key_id, editable=False)
    created_by = models.ForeignKey(
        "apikeys.User", on_delete=models.PROTECT, related_name="api_keys", db_index=False
    )
    # The parent key, which created this key directly or through a minted token. This key never
    # exceeds the parent's grant, and is revoked with the parent. Null if an operator or an older
    # release created the key.
    maker = models.ForeignKey(
        "self", on_delete=models.PROTECT, related_name="made", null=True, db_index=False
    )
    # The minted token, by value, because the service may remove the token after its expiry.
    maker_token_id = models.CharField(max_length=40, blank=True, default="", db_default="")
    # The digest of the previous secret, which is valid until the end of its grace period, if any.
    previous_digest = models.BinaryField(max_length=32, unique=True, null=True)
    previous_digest_expires_at = models.DateTimeField(null=True)
    # Null before the first rotation, or after a rotation by an older release, which recorded no
    # time. That release may still run, so no constraint limits the grace period yet.
    rotated_at = models.DateTimeField(null=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta(Credential.Meta):
        verbose_name = "API key"
        # Admin permissions for all users' keys. The permission to add keys can grant every scope.
        permissions = [("revoke_apikey", "Can revoke API keys")]
        constraints = [
            *Credential.Meta.constraints,
            models.CheckConstraint(name="apikey_id_form", condition=Q(id__startswith="key-")),
            models.CheckConstraint(
                name="apikey_previous_digest_has_an_end",
                condition=Q(previous_digest=None, previous_digest_expires_at=None)
                | Q(previous_digest__isnull=False, previous_digest_expires_at__isnull=False),
            ),
            models.CheckConstraint(
                name="apikey_maker_token_has_its_key",
                condition=Q(maker_token_id="") | Q(maker__isnull=False),
            ),
        ]
        indexes = [
            *Credential.Meta.indexes,
            # For a revocation, which includes the descendants of a key or token.
            models.Index(
                fields=["maker", "expires_at"],
                name="apikey_by_maker",
                condition=Q(revoked_at=None, maker__isnull=False),
            ),
            models.Index(
                fields=["maker_token_id"],
                name="apikey_by_maker_token",
                condition=Q(revoked_at=None) & ~Q(maker_token_id=""),
            ),
            # For the count of an owner's active keys.
            models.Index(
                fields=["created_by", "expires_at"],
                name="apikey_unrevoked_of_owner",
                condition=Q(revoked_at=None),
            ),
        ]

    @property
    def made_by(self) -> str | None:
        """Return the id of the key or token that created this key; None for an operator."""
        return self.maker_token_id or self.maker_id


class AccessToken(Credential):
    """A token for the state and cluster endpoints, minted from an API key or issued."""

    class Kind(models.TextChoices):
        """The kind of subject that the token represents."""

        PERSONAL = "PERSONAL", "Personal"
        SERVICE = "SERVICE", "Service"

    id = models.CharField(primary_key=True, max_length=40, default=access_token_id, editable=False)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    created_by = models.ForeignKey(
        "apikeys.User", on_delete=models.PROTECT, related_name="access_tokens", db_index=False
    )
    # The key that minted the token; null for issued tokens.
    api_key = models.ForeignKey(
        ApiKey, on_delete=models.PROTECT, related_name="access_tokens", null=True, blank=True
    )
    # The policy that issued the token in an exchange; otherwise null.
    trust_policy = models.ForeignKey(
        "apikeys.TrustPolicy",
        on_delete=models.PROTECT,
        related_name="access_tokens",
        null=True,
        blank=True,
        db_index=False,
    )
    # Claims of the platform's token: jti, sub, repository, commit and run.
    run = models.JSONField(null=True, editable=False)

    objects = AccessTokenQuerySet.as_manager()

    class Meta(Credential.Meta):
        permissions = [("revoke_accesstoken", "Can revoke access tokens")]
        constraints = [
            *Credential.Meta.constraints,
            models.CheckConstraint(name="accesstoken_id_form", condition=Q(id__startswith="tok-")),
            models.CheckConstraint(
                name="accesstoken_kind_known", condition=Q(kind__in=["PERSONAL", "SERVICE"])
            ),
            models.CheckConstraint(
                name="accesstoken_minted_expires",
                condition=Q(api_key=None) | Q(expires_at__isnull=False),
            ),
            models.CheckConstraint(
                name="accesstoken_exchanged_expires",
                condition=Q(trust_policy=None)
                | Q(api_key=None, kind="SERVICE", expires_at__isnull=False),
            ),
        ]
        indexes = [
            *Credential.Meta.indexes,
            # For the few tokens that operators issued, among the many tokens of pipelines.
            models.Index(
                fields=["expires_at"],
                name="accesstoken_by_operators",
                condition=Q(revoked_at=None, api_key=None, trust_policy=None),
            ),
            models.Index(
                fields=["trust_policy", "-id"],
                name="accesstoken_of_policy",
                condition=Q(trust_policy__isnull=False),
            ),
        ]

    @property
    def lifetime_seconds(self) -> int | None:
        """Return the lifetime from creation to expiry in whole seconds; None means unlimited."""
        if self.expires_at is None:
            return None
        return int((self.expires_at - self.created_at).total_seconds())

    @property
    def expiry(self) -> dt.datetime | None:
        """Return the token's or its origin's expiry, whichever is earlier; None means no expiry."""
        origin = self.api_key or self.trust_policy
        ends = (self.expires_at, None if origin is None else origin.expires_at)
        return min(filter(None, ends), default=None)
