"""Events on their way to endpoints: what is due, and what became of it."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from django.db import models
from django.db.models import Q
from django.utils import timezone

from infra_service.webhooks.models.endpoints import WebhookEndpoint
from infra_service.webhooks.models.events import WebhookEvent

if TYPE_CHECKING:
    import uuid

#: Of what is kept of why an attempt failed.
MAX_ERROR: Final = 200
#: The error of a delivery that was given up because its endpoint is disabled.
DISABLED: Final = "the webhook is disabled"
#: What waits for longer than this is told to operators.
LATE_AFTER: Final = dt.timedelta(hours=1)


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
