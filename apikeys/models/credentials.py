from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Length
from django.db.models.lookups import Exact, GreaterThanOrEqual, LessThanOrEqual
from django.utils import timezone

from apikeys.grants import Binding, Grant
from apikeys.identifiers import access_token_id, api_key_id
from apikeys.querysets import AccessTokenQuerySet, ApiKeyQuerySet

if TYPE_CHECKING:
    import datetime as dt

#: How many components, environments and applications a key or token can be bound to.
MAX_BOUND_IDS: Final = 1000


class JsonArrayLength(Func):
    """How many items a column's JSON list has."""

    function = "JSONB_ARRAY_LENGTH"
    output_field = models.IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, Any]:
        """Return the same for SQLite, which calls it otherwise."""
        return self.as_sql(compiler, connection, function="JSON_ARRAY_LENGTH", **extra)


def _so_many(column: str) -> Q:
    length = JsonArrayLength(column)
    return Q((f"{column}__isnull", True)) | (
        Q(GreaterThanOrEqual(length, 1)) & Q(LessThanOrEqual(length, MAX_BOUND_IDS))
    )


class Credential(models.Model):
    """What API keys and access tokens have in common. The secret itself is never stored."""

    name = models.CharField(max_length=200)
    scopes = models.JSONField(default=list)
    digest = models.BinaryField(max_length=32, unique=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Raised by each change, so that two changes at once cannot both build on what they read.
    revision = models.PositiveIntegerField(default=0, editable=False)
    # Where the credential works; null is everywhere. Outside it, everything is 404.
    bound_cluster_id = models.UUIDField(null=True, blank=True)
    bound_component_ids = models.JSONField(null=True, blank=True)
    bound_environment_ids = models.JSONField(null=True, blank=True)
    bound_application_ids = models.JSONField(null=True, blank=True)

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
            models.CheckConstraint(
                name="%(class)s_bound_one_way",
                condition=Q(bound_cluster_id=None)
                | Q(bound_component_ids__isnull=True, bound_environment_ids__isnull=True),
            ),
            # Each request looks through them.
            models.CheckConstraint(
                name="%(class)s_bound_to_so_many",
                condition=_so_many("bound_component_ids") & _so_many("bound_environment_ids"),
            ),
            # A release that knows no applications looks at the components, and must find some.
            models.CheckConstraint(
                name="%(class)s_bound_to_applications",
                condition=_so_many("bound_application_ids")
                & (Q(bound_application_ids__isnull=True) | Q(bound_component_ids__isnull=False)),
            ),
        ]
        indexes = [
            models.Index(fields=["created_by", "id"], name="%(class)s_of_owner"),
            # For the admin: who ends soon, and who has ended before the time.
            models.Index(
                fields=["expires_at"],
                name="%(class)s_by_expiry",
                condition=Q(revoked_at=None, expires_at__isnull=False),
            ),
            models.Index(
                fields=["-id"], name="%(class)s_revoked", condition=Q(revoked_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"

    @property
    def binding(self) -> Binding:
        """Where the credential works."""
        return Binding.of_columns(
            self.bound_cluster_id,
            self.bound_component_ids,
            self.bound_environment_ids,
            self.bound_application_ids,
        )

    @property
    def grant(self) -> Grant:
        """What the credential itself holds; a minted token has no more of it than its key."""
        return Grant(frozenset(self.scopes), self.binding, self.expires_at)

    @property
    def ends_at(self) -> dt.datetime | None:
        """When it ends by itself; None is never."""
        return self.expires_at


class ApiKey(Credential):
    """A long-lived key, from which its owner mints access tokens."""

    id = models.CharField(primary_key=True, max_length=40, default=api_key_id, editable=False)
    created_by = models.ForeignKey(
        "apikeys.User", on_delete=models.PROTECT, related_name="api_keys", db_index=False
    )
    # The key that made this one, itself or by a token that was minted from it: this key has no
    # more than it and ends with it. Null when an operator made it, or a release that kept no maker.
    maker = models.ForeignKey(
        "self", on_delete=models.PROTECT, related_name="made", null=True, db_index=False
    )
    # That token, by value: it may be removed when it has ended, and so has what it made.
    maker_token_id = models.CharField(max_length=40, blank=True, default="", db_default="")
    # The secret before the last rotation, which works until its grace period ends.
    previous_digest = models.BinaryField(max_length=32, unique=True, null=True)
    previous_digest_expires_at = models.DateTimeField(null=True)
    # Null before the first rotation, or where it was in a release that kept no time. That release
    # may run beside this one; the next can bound the grace period by it, in a constraint.
    rotated_at = models.DateTimeField(null=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta(Credential.Meta):
        verbose_name = "API key"
        # Of the admin, where they are no own keys; who may add may also hand on every scope.
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
            # For a revocation, which takes what a key or token has made along.
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
            # How many work of an owner's.
            models.Index(
                fields=["created_by", "expires_at"],
                name="apikey_unrevoked_of_owner",
                condition=Q(revoked_at=None),
            ),
        ]

    @property
    def made_by(self) -> str | None:
        """The id of the key or token that made it; None when an operator did, or nobody knows."""
        return self.maker_token_id or self.maker_id


class AccessToken(Credential):
    """A token that the state and cluster endpoints accept: issued by an operator, or minted."""

    class Kind(models.TextChoices):
        """Whom the token stands for."""

        PERSONAL = "PERSONAL", "Personal"
        SERVICE = "SERVICE", "Service"

    id = models.CharField(primary_key=True, max_length=40, default=access_token_id, editable=False)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    created_by = models.ForeignKey(
        "apikeys.User", on_delete=models.PROTECT, related_name="access_tokens", db_index=False
    )
    # The key that the token was minted from; null when an operator issued it.
    api_key = models.ForeignKey(
        ApiKey, on_delete=models.PROTECT, related_name="access_tokens", null=True, blank=True
    )

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
        ]
        indexes = [
            *Credential.Meta.indexes,
            # The few that operators issued, among the minted ones that a pipeline makes each hour.
            models.Index(
                fields=["expires_at"],
                name="accesstoken_issued",
                condition=Q(revoked_at=None, api_key=None),
            ),
        ]

    @property
    def ends_at(self) -> dt.datetime | None:
        """When it ends by itself, or with the key that it was minted from; None is never."""
        key_ends_at = None if self.api_key is None else self.api_key.expires_at
        return min(filter(None, (self.expires_at, key_ends_at)), default=None)
