from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, TypeVar

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Length, Now
from django.db.models.lookups import Exact
from django.utils import timezone
from uuid_utils.compat import uuid7

from apikeys.identifiers import access_token_id, api_key_id

if TYPE_CHECKING:
    import uuid

#: ``last_used_at`` is written at most this often, so that traffic does not become writes.
LAST_USED_RESOLUTION = dt.timedelta(minutes=1)


class User(AbstractUser):
    """A person or a machine account that owns keys and tokens."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    display_name = models.CharField(max_length=200, blank=True)


C = TypeVar("C", bound="Credential")


class CredentialQuerySet(models.QuerySet[C]):
    """Rules over many credentials."""

    def touch(self, credential_id: str, now: dt.datetime) -> bool:
        """Note the credential's use; at most one writer a minute gets to."""
        return bool(
            self.filter(pk=credential_id)
            .filter(Q(last_used_at=None) | Q(last_used_at__lte=now - LAST_USED_RESOLUTION))
            .update(last_used_at=now)
        )

    def revoke(self, *credential_ids: str) -> int:
        """Revoke those that are not; return how many were changed. Final, and idempotent."""
        return self.filter(pk__in=credential_ids, revoked_at=None).update(revoked_at=Now())


class Credential(models.Model):
    """What API keys and access tokens have in common. The secret itself is never stored."""

    name = models.CharField(max_length=200)
    scopes = models.JSONField(default=list)
    digest = models.BinaryField(max_length=32, unique=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Where the credential works; null is everywhere. Outside it, everything is 404.
    bound_cluster_id = models.UUIDField(null=True, blank=True)
    bound_component_ids = models.JSONField(null=True, blank=True)
    bound_environment_ids = models.JSONField(null=True, blank=True)

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(name="%(class)s_name_present", condition=~Q(name="")),
            models.CheckConstraint(name="%(class)s_scopes_present", condition=~Q(scopes=[])),
            models.CheckConstraint(
                name="%(class)s_digest_is_sha256",
                condition=Exact(Length(F("digest")), 32),
            ),
            models.CheckConstraint(
                name="%(class)s_expires_after_creation",
                condition=Q(expires_at=None) | Q(expires_at__gt=F("created_at")),
            ),
        ]


class ApiKey(Credential):
    """A long-lived key, from which its owner mints access tokens."""

    id = models.CharField(primary_key=True, max_length=40, default=api_key_id, editable=False)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_keys")
    # The secret before the last rotation, which works until its grace period ends.
    previous_digest = models.BinaryField(max_length=32, unique=True, null=True)
    previous_digest_expires_at = models.DateTimeField(null=True)

    objects = CredentialQuerySet.as_manager()

    class Meta(Credential.Meta):
        verbose_name = "API key"
        constraints = [
            *Credential.Meta.constraints,
            models.CheckConstraint(name="apikey_id_form", condition=Q(id__startswith="key-")),
            models.CheckConstraint(
                name="apikey_previous_digest_has_an_end",
                condition=Q(previous_digest=None, previous_digest_expires_at=None)
                | Q(previous_digest__isnull=False, previous_digest_expires_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"


class AccessToken(Credential):
    """A token that the state and cluster endpoints accept: issued by an operator, or minted."""

    class Kind(models.TextChoices):
        """Whom the token stands for."""

        PERSONAL = "PERSONAL", "Personal"
        SERVICE = "SERVICE", "Service"

    id = models.CharField(primary_key=True, max_length=40, default=access_token_id, editable=False)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="access_tokens")
    # The key that the token was minted from; null when an operator issued it.
    api_key = models.ForeignKey(
        ApiKey, on_delete=models.PROTECT, related_name="access_tokens", null=True, blank=True
    )

    objects = CredentialQuerySet.as_manager()

    class Meta(Credential.Meta):
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
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"


class AuditEvent(models.Model):
    """One thing that somebody did. A database trigger refuses to change or delete a row.

    The columns name users and tokens by value, so that the trail outlives what it speaks of.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    occurred_at = models.DateTimeField(default=timezone.now)
    action = models.CharField(max_length=50)
    actor_id: models.UUIDField[uuid.UUID | None, uuid.UUID | None] = models.UUIDField(null=True)
    actor_name = models.CharField(max_length=200)
    token_id = models.CharField(max_length=40, blank=True)
    resource_id = models.CharField(max_length=100)
    address = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    details = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["resource_id", "-id"], name="auditevent_by_resource")]

    def __str__(self) -> str:
        return f"{self.action} {self.resource_id}"
