"""Webhook endpoints, and the periods in which they were disabled."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from apikeys.idle_owners import idle_before, signed_on_last
from apikeys.models.grant_holder import GrantHolder
from apikeys.querysets import GrantHolderQuerySet
from infra_service.lib.encryption import current_key
from infra_service.lib.uuids import uuid7
from infra_service.webhooks import secrets

if TYPE_CHECKING:
    import uuid

    from apikeys.models import User

#: The time for which a replaced secret also signs.
BOTH_SIGN: Final = dt.timedelta(days=1)
#: The reason of an endpoint that an operator disabled, and that the owner therefore cannot enable.
BY_OPERATOR: Final = "OPERATOR"
MAX_URL: Final = 2000
MAX_FILTER: Final = 1024
_HAS_PATH: Final = "://[^/?#]*[/?#]"
#: The maximum number of endpoints per owner, so that a single user cannot flood the queue.
MAX_ENDPOINTS: Final = 100


class WebhookEndpointQuerySet(GrantHolderQuerySet[Any]):
    def granted(self) -> WebhookEndpointQuerySet:
        """Return the unexpired endpoints with an owner and a creator's key that still work.

        The owner must be active and not idle. ``subscriptions`` also checks the token that created
        an endpoint.
        """
        now = timezone.now()
        granted = self.filter(
            Q(expires_at=None) | Q(expires_at__gt=now),
            Q(maker=None) | Q(maker__expires_at=None) | Q(maker__expires_at__gt=now),
            maker__revoked_at=None,
            owner__is_active=True,
        )
        before = idle_before(now)
        return granted if before is None else granted.exclude(signed_on_last(before, "owner__"))

    def working(self) -> WebhookEndpointQuerySet:
        """Return the endpoints that currently receive messages."""
        return self.granted().filter(disabled_at=None)

    def enabled_without_key(self, owner: User) -> WebhookEndpointQuerySet:
        """Return the owner's enabled, unexpired endpoints that no key or token limits."""
        unexpired = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
        return self.filter(unexpired, owner=owner, disabled_at=None, maker=None, maker_token_id="")

    def have_type(self, name: str) -> bool:
        """Return whether any endpoint subscribes to the type, even a disabled endpoint."""
        return any(name in types for types in self.values_list("event_types", flat=True))

    def with_secrets_of_other_keys(self) -> WebhookEndpointQuerySet:
        """Return the endpoints with a secret or URL that is not encrypted with the current key."""
        key_name = current_key()
        signs = Q(retired_secret__isnull=False, retired_secret_until__gt=timezone.now())
        return self.filter(
            ~Q(encryption_key=key_name)
            | ~Q(encrypted_url__startswith=f"{key_name}.")
            | Q(stored_url__regex=_HAS_PATH)
            | (signs & ~Q(retired_encryption_key=key_name))
        )


class WebhookEndpoint(GrantHolder):
    """A URL that receives events within its own grant and its creator's grant."""

    class Format(models.TextChoices):
        """The format of messages."""

        STANDARD = "standard", "Standard Webhooks"
        SLACK = "slack", "Slack's incoming webhooks"
        OCSF = "ocsf", "OCSF API Activity"

    id: models.UUIDField[uuid.UUID, uuid.UUID] = models.UUIDField(
        primary_key=True, default=uuid7, editable=False
    )
    owner = models.ForeignKey(
        "apikeys.User", on_delete=models.PROTECT, related_name="webhooks", db_index=False
    )
    # Only the scheme and host; the whole URL in a row of an earlier release.
    stored_url = models.CharField(max_length=MAX_URL, db_column="url")
    # From ``secrets.encrypt_url``, because the path and query can be secret, as in Slack's URLs.
    # Empty in a row of an earlier release.
    encrypted_url = models.TextField(blank=True, default="", db_default="", editable=False)
    event_types = models.JSONField(default=list)
    filter = models.CharField(max_length=MAX_FILTER, blank=True)
    format = models.CharField(max_length=10, choices=Format.choices, default=Format.STANDARD)
    # The nonce and the AES-256-GCM ciphertext of the secret, encrypted with the key
    # ``encryption_key``. A digest would not suffice, because signing requires the secret.
    secret = models.BinaryField()
    encryption_key = models.CharField(max_length=16)
    # The replaced secret, encrypted in the same way, and the time until which it signs.
    retired_secret = models.BinaryField(null=True)
    retired_encryption_key = models.CharField(max_length=16, blank=True)
    retired_secret_until = models.DateTimeField(null=True)
    disabled_at = models.DateTimeField(null=True, editable=False)
    disabled_reason = models.CharField(max_length=20, blank=True)
    # The key and the token (by value) that created the endpoint, which limit its grant and its
    # lifetime. Empty when an operator created it.
    maker = models.ForeignKey(
        "apikeys.ApiKey", on_delete=models.PROTECT, related_name="+", null=True, db_index=False
    )
    maker_token_id = models.CharField(max_length=40, blank=True, default="")
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = WebhookEndpointQuerySet.as_manager()

    class Meta(GrantHolder.Meta):
        verbose_name = "webhook endpoint"
        constraints = [
            *GrantHolder.Meta.constraints,
            models.CheckConstraint(
                name="webhookendpoint_url_form",
                condition=Q(stored_url__startswith="https://")
                | Q(stored_url__startswith="http://"),
            ),
            models.CheckConstraint(
                name="webhookendpoint_event_types_present", condition=~Q(event_types=[])
            ),
            models.CheckConstraint(
                name="webhookendpoint_retired_secret_ends",
                condition=Q(retired_secret=None, retired_secret_until=None)
                | Q(retired_secret__isnull=False, retired_secret_until__isnull=False),
            ),
            models.CheckConstraint(
                name="webhookendpoint_disabled_for_a_reason",
                condition=Q(disabled_at=None, disabled_reason="")
                | (Q(disabled_at__isnull=False) & ~Q(disabled_reason="")),
            ),
        ]
        indexes = [models.Index(fields=["owner", "id"], name="webhookendpoint_of_owner")]

    @property
    def is_enabled(self) -> bool:
        return self.disabled_at is None

    @property
    def is_blocked(self) -> bool:
        """Return whether an operator disabled the endpoint, so that the owner cannot enable it."""
        return self.disabled_reason == BY_OPERATOR

    @property
    def retired_secret_signs(self) -> bool:
        """Return whether the replaced secret signs in addition to the current secret."""
        until = self.retired_secret_until
        return self.retired_secret is not None and until is not None and until > timezone.now()

    def signing_secrets(self) -> list[bytes]:
        """Return the secrets that sign now: the current secret, and for a day the replaced secret.

        Skip a replaced secret that cannot be decrypted.

        Raises:
            SecretUnreadableError: the current secret cannot be decrypted.
        """
        signing = [secrets.decrypt(self.secret, self.encryption_key, self.pk)]
        if self.retired_secret is not None and self.retired_secret_signs:
            with suppress(secrets.SecretUnreadableError):
                signing.append(
                    secrets.decrypt(self.retired_secret, self.retired_encryption_key, self.pk)
                )
        return signing

    def reencrypted(self) -> dict[str, Any]:
        """Return the changed columns after encrypting the URL and secrets with the current key.

        Skip a value that cannot be decrypted.
        """
        columns: dict[str, Any] = {}
        if self.key_of_url != current_key():
            with suppress(secrets.SecretUnreadableError):
                self.url = self.destination()
                columns = {"stored_url": self.stored_url, "encrypted_url": self.encrypted_url}
        for prefix in ("", "retired_"):
            sealed, key_name = f"{prefix}secret", f"{prefix}encryption_key"
            encrypted, used = getattr(self, sealed), getattr(self, key_name)
            if encrypted is None or used == current_key():
                continue
            with suppress(secrets.SecretUnreadableError):
                secret = secrets.decrypt(encrypted, used, self.pk)
                columns[sealed], columns[key_name] = secrets.encrypt(secret, self.pk)
        return columns

    def record_disabled_period(self, ended_at: dt.datetime) -> None:
        """Record the period in which the endpoint was disabled, before ``disabled_at`` changes."""
        if self.disabled_at is not None and self.disabled_at < ended_at:
            DisabledPeriod.objects.create(
                endpoint=self, began_at=self.disabled_at, ended_at=ended_at
            )

    @property
    def url(self) -> str:
        """Return the URL, or its scheme and host if it cannot be decrypted."""
        try:
            return self.destination()
        except secrets.SecretUnreadableError:
            return self.origin

    @url.setter
    def url(self, url: str) -> None:
        self.stored_url = origin_of(url)
        self.encrypted_url = secrets.encrypt_url(url, self.pk)

    def destination(self) -> str:
        """Return the URL.

        Raises:
            SecretUnreadableError: the URL cannot be decrypted.
        """
        if not self.key_of_url:
            return self.stored_url
        url = secrets.decrypt_url(self.encrypted_url, self.pk)
        # After a downgrade, the earlier release may have stored a URL without a path.
        return url if origin_of(url) == self.stored_url else self.stored_url

    @property
    def key_of_url(self) -> str:
        """Return the name of the key that encrypts the URL, or "" if it is not encrypted."""
        # After a downgrade, the earlier release may have stored a new URL.
        is_plain = self.stored_url != self.origin
        return "" if is_plain else self.encrypted_url.partition(".")[0]

    @property
    def origin(self) -> str:
        """Return the scheme and host, for readers who must not see the URL."""
        return origin_of(self.stored_url)


class DisabledPeriod(models.Model):
    """A past period in which an endpoint was disabled.

    The service never delivers events of that period to the endpoint, even if it reads them later.
    """

    # Without a constraint, because a release that does not know this table also deletes endpoints.
    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, db_constraint=False, db_index=False,
        related_name="+",
    )  # fmt: skip
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField()

    class Meta:
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(
                name="disabledperiod_ends_after_it_began", condition=Q(ended_at__gt=F("began_at"))
            )
        ]
        indexes = [
            models.Index(fields=["endpoint", "ended_at"], name="disabledperiod_of_endpoint"),
            models.Index(fields=["ended_at"], name="disabledperiod_by_age"),
        ]

    def __str__(self) -> str:
        return f"disabled from {self.began_at.isoformat()} to {self.ended_at.isoformat()}"


def origin_of(url: str) -> str:
    """Return the scheme, host and port. The path and query can be secret, as in Slack's URLs."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
