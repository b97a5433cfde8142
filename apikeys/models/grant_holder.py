"""Columns of a grant, for API keys, access tokens and trust policies."""

from __future__ import annotations

from typing import Any, Final

from django.db import models
from django.db.models import F, Func, Q
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual
from django.utils import timezone

from apikeys.bindings import Binding
from apikeys.grants import Grant
from apikeys.networks import MAX_NETWORKS, Networks

#: Maximum number of components, environments and applications in a binding.
MAX_BOUND_IDS: Final = 1000


class JsonArrayLength(Func):
    """The length of a column's JSON list."""

    function = "JSONB_ARRAY_LENGTH"
    output_field = models.IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, Any]:
        """Return the SQL for SQLite, where the function has another name."""
        return self.as_sql(compiler, connection, function="JSON_ARRAY_LENGTH", **extra)


def _so_many(column: str, most: int = MAX_BOUND_IDS) -> Q:
    length = JsonArrayLength(column)
    return Q((f"{column}__isnull", True)) | (
        Q(GreaterThanOrEqual(length, 1)) & Q(LessThanOrEqual(length, most))
    )


class GrantHolder(models.Model):
    """A row with a grant: scopes, binding, networks and expiry."""

    name = models.CharField(max_length=200)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Incremented by each change, to detect concurrent changes.
    revision = models.PositiveIntegerField(default=0, editable=False)
    # The binding. Null means unrestricted. Requests for objects outside the binding receive 404.
    bound_cluster_id = models.UUIDField(null=True, blank=True)
    bound_component_ids = models.JSONField(null=True, blank=True)
    bound_environment_ids = models.JSONField(null=True, blank=True)
    bound_application_ids = models.JSONField(null=True, blank=True)
    # Networks (CIDR) from which clients may use the credential. Null means every address.
    allowed_networks = models.JSONField(null=True, blank=True)

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(name="%(class)s_name_present", condition=~Q(name="")),
            models.CheckConstraint(name="%(class)s_scopes_present", condition=~Q(scopes=[])),
            models.CheckConstraint(
                name="%(class)s_expires_after_creation",
                condition=Q(expires_at=None) | Q(expires_at__gt=F("created_at")),
            ),
            models.CheckConstraint(
                name="%(class)s_bound_one_way",
                condition=Q(bound_cluster_id=None)
                | Q(bound_component_ids__isnull=True, bound_environment_ids__isnull=True),
            ),
            # The number of ids is limited, because each request compares with all of them.
            models.CheckConstraint(
                name="%(class)s_bound_to_so_many",
                condition=_so_many("bound_component_ids") & _so_many("bound_environment_ids"),
            ),
            # A release without support for applications checks only the list of components, which
            # must exist.
            models.CheckConstraint(
                name="%(class)s_bound_to_applications",
                condition=_so_many("bound_application_ids")
                & (Q(bound_application_ids__isnull=True) | Q(bound_component_ids__isnull=False)),
            ),
            models.CheckConstraint(
                name="%(class)s_networks_so_many",
                condition=_so_many("allowed_networks", MAX_NETWORKS),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"

    @property
    def binding(self) -> Binding:
        return Binding.of_columns(
            self.bound_cluster_id,
            self.bound_component_ids,
            self.bound_environment_ids,
            self.bound_application_ids,
        )

    @property
    def has_expired(self) -> bool:
        """Return whether the row's own expiry has passed."""
        return self.expires_at is not None and self.expires_at <= timezone.now()

    @property
    def grant(self) -> Grant:
        """Return the grant of the row itself. The grant of the origin also limits a token."""
        networks = Networks.of_column(self.allowed_networks)
        return Grant(frozenset(self.scopes), self.binding, self.expires_at, networks)
