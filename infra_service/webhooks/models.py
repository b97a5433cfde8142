"""Who is told, of what, and what became of it."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django.db import models
from django.db.models import Q
from django.utils import timezone
from uuid_utils.compat import uuid7

from apikeys.models.grant_holder import GrantHolder
from apikeys.querysets import GrantHolderQuerySet

if TYPE_CHECKING:
    import uuid

    from apikeys.grants import Binding

#: After its rotation a secret signs along for so long.
BOTH_SIGN: Final = dt.timedelta(days=1)
MAX_URL: Final = 2000
MAX_FILTER: Final = 1024
#: Of what is kept of why an attempt failed.
MAX_ERROR: Final = 200
#: Of one person, so that one cannot make the trail be sent everywhere.
MAX_ENDPOINTS: Final = 100
#: What waits for longer than this is told to operators.
LATE_AFTER: Final = dt.timedelta(hours=1)


class WebhookEndpointQuerySet(GrantHolderQuerySet[Any]):
    """Rules over many endpoints."""

    def working(self) -> WebhookEndpointQuerySet:
        """Those that may be told of something now, as far as their rows say it.

        The token that has made an endpoint is looked at besides (``reach``).
        """
        now = timezone.now()
        return self.filter(
            Q(expires_at=None) | Q(expires_at__gt=now),
            Q(maker=None) | Q(maker__expires_at=None) | Q(maker__expires_at__gt=now),
            maker__revoked_at=None,
            owner__is_active=True,
            disabled_at=None,
        )


class WebhookEndpoint(GrantHolder):
    """An address that is told of events, as far as its own grant and its maker's reach."""

    class Format(models.TextChoices):
        """How a message is written."""

        STANDARD = "standard", "Standard Webhooks"
        SLACK = "slack", "Slack's incoming webhooks"

    id: models.UUIDField[uuid.UUID, uuid.UUID] = models.UUIDField(
        primary_key=True, default=uuid7, editable=False
    )
    owner = models.ForeignKey(
        "apikeys.User", on_delete=models.PROTECT, related_name="webhooks", db_index=False
    )
    url = models.CharField(max_length=MAX_URL)
    event_types = models.JSONField(default=list)
    filter = models.CharField(max_length=MAX_FILTER, blank=True)
    format = models.CharField(max_length=10, choices=Format.choices, default=Format.STANDARD)
    # Nonce and AES-256-GCM, with the key of that name. It must be read again, for it signs.
    secret = models.BinaryField()
    encryption_key = models.CharField(max_length=16)
    # The one before, encrypted likewise, and until when it signs too. It is not encrypted anew.
    retired_secret = models.BinaryField(null=True)
    retired_encryption_key = models.CharField(max_length=16, blank=True)
    retired_secret_until = models.DateTimeField(null=True)
    disabled_at = models.DateTimeField(null=True, editable=False)
    disabled_reason = models.CharField(max_length=20, blank=True)
    # The key and the token, by value, that made it: it is told no more than they may read, and
    # ends with them. Empty when an operator made it.
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
                condition=Q(url__startswith="https://") | Q(url__startswith="http://"),
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
        """Whether neither its owner nor its receiver has ended it."""
        return self.disabled_at is None

    @property
    def origin(self) -> str:
        """Where it leads, for whom the URL is none of their business."""
        return origin_of(self.url)


def origin_of(url: str) -> str:
    """Return scheme, host and port; path and query may be a secret, as those of Slack's URLs."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _named(model: str) -> Any:
    """Return a column with an id by which a filter finds the name.

    The row may be deleted, and the event is told nevertheless.
    """
    return models.ForeignKey(
        model, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False,
        related_name="+",
    )  # fmt: skip


class WebhookEvent(models.Model):
    """What happened, as it is told: made once, for all endpoints that are told of it."""

    # That of the trail's event, or made of what happened, so that it is entered once.
    id = models.UUIDField(primary_key=True, editable=False)
    type = models.CharField(max_length=50)
    occurred_at = models.DateTimeField()
    resource_id = models.CharField(max_length=100)
    component = _named("states.Component")
    environment = _named("states.Environment")
    application = _named("states.Application")
    cluster = _named("workloads.Cluster")
    # Whose business it is, where it is somebody's own.
    owner_id: models.UUIDField[uuid.UUID | None, uuid.UUID | None] = models.UUIDField(null=True)
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        default_permissions = ("view",)
        indexes = [models.Index(fields=["created_at"], name="webhookevent_by_age")]

    def __str__(self) -> str:
        return f"{self.type} {self.resource_id}"

    def is_inside(self, binding: Binding) -> bool:
        """Whether whoever has this binding may be told of it; what is of no place is outside."""
        if binding.cluster_id is not None and self.cluster_id != binding.cluster_id:
            return False
        places = {
            "component_ids": self.component_id,
            "environment_ids": self.environment_id,
            "application_ids": self.application_id,
        }
        return all(ids is None or places[name] in ids for name, ids in binding.lists.items())


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    """Rules over many deliveries."""

    def waiting(self) -> DeliveryQuerySet:
        """Those that are to be sent, now or later."""
        return self.filter(status=Delivery.Status.WAITING)

    def late(self) -> DeliveryQuerySet:
        """Those that wait for long: their receivers fail, or nobody sends."""
        return self.waiting().filter(created_at__lt=timezone.now() - LATE_AFTER)

    def failed(self) -> DeliveryQuerySet:
        """Those that were given up."""
        return self.filter(status=Delivery.Status.FAILED)

    def due(self) -> DeliveryQuerySet:
        """Those that are to be sent now: nobody is at it, and nothing older of its resource waits.

        The lease of who was killed has ended.
        """
        now = timezone.now()
        of_resource = Delivery.objects.waiting().filter(
            endpoint_id=models.OuterRef("endpoint_id"), resource_id=models.OuterRef("resource_id")
        )
        # Not "none that is older exists", which PostgreSQL makes a join of: nothing waits when it
        # counts rows, so it expects one, and compares each of thousands with all the others.
        oldest = models.Subquery(of_resource.order_by("id").values("id")[:1])
        return self.waiting().filter(id=oldest, next_attempt_at__lte=now)


class Delivery(models.Model):
    """An event on its way to an endpoint. The order of the ids is that of the trail."""

    class Status(models.TextChoices):
        """What has become of it."""

        WAITING = "WAITING", "Waiting"
        DELIVERED = "DELIVERED", "Delivered"
        FAILED = "FAILED", "Failed"

    id = models.BigAutoField(primary_key=True)
    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    event = models.ForeignKey(WebhookEvent, on_delete=models.PROTECT, related_name="deliveries")
    # Of the event: what is about one resource is sent in order.
    resource_id = models.CharField(max_length=100)
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    # While somebody sends it, when that is taken for lost.
    next_attempt_at = models.DateTimeField(null=True, default=timezone.now)
    # Who sends it, or did last.
    claim: models.UUIDField[uuid.UUID | None, uuid.UUID | None] = models.UUIDField(null=True)
    last_attempt_at = models.DateTimeField(null=True)
    # The last answer's status; null when there was none. Of its body nothing is kept.
    response_status = models.PositiveSmallIntegerField(null=True)
    error = models.CharField(max_length=MAX_ERROR, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        default_permissions = ("view",)
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(name="delivery_once", fields=["endpoint", "event"]),
            models.CheckConstraint(
                name="delivery_waits_for_a_time",
                condition=Q(status="WAITING", next_attempt_at__isnull=False)
                | Q(status__in=["DELIVERED", "FAILED"], next_attempt_at=None),
            ),
        ]
        indexes = [
            models.Index(fields=["endpoint", "-id"], name="delivery_of_endpoint"),
            models.Index(
                fields=["next_attempt_at", "id"],
                name="delivery_due",
                condition=Q(status="WAITING"),
            ),
            models.Index(
                fields=["endpoint", "resource_id", "id"],
                name="delivery_in_order",
                condition=Q(status="WAITING"),
            ),
            models.Index(fields=["-id"], name="delivery_failed", condition=Q(status="FAILED")),
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk}"


class TrailPosition(models.Model):
    """Up to where the trail has been read for endpoints; there is one row at most.

    ``trail.py`` says why this is enough.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    # On PostgreSQL, of the last event that was read.
    transaction_id = models.BigIntegerField(null=True)
    event_id = models.UUIDField(null=True)
    # What had happened before is told to nobody.
    began_at = models.DateTimeField(default=timezone.now)

    class Meta:
        default_permissions = ("view",)
        constraints = [models.CheckConstraint(name="trailposition_is_one", condition=Q(id=1))]

    def __str__(self) -> str:
        return "the position in the trail"
