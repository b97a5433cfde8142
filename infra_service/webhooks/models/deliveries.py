"""Deliveries of events to endpoints, and their status."""

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

#: The maximum number of characters of the stored error of a failed attempt.
MAX_ERROR: Final = 200
#: The error of a delivery that failed because its endpoint is disabled.
DISABLED: Final = "the webhook is disabled"
#: The waiting time after which a delivery is reported to operators.
LATE_AFTER: Final = dt.timedelta(hours=1)


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def waiting(self) -> DeliveryQuerySet:
        """Return the deliveries that still have to be sent."""
        return self.filter(status=Delivery.Status.WAITING)

    def late(self) -> DeliveryQuerySet:
        """Return the deliveries that wait too long, because receivers fail or no process sends."""
        return self.waiting().filter(created_at__lt=timezone.now() - LATE_AFTER)

    def failed(self) -> DeliveryQuerySet:
        """Return the deliveries that failed permanently."""
        return self.filter(status=Delivery.Status.FAILED)

    def for_display(self) -> DeliveryQuerySet:
        """Load the endpoints and events, without secrets and payloads."""
        return self.select_related("endpoint", "event").defer(
            "endpoint__secret", "endpoint__retired_secret", "event__data"
        )

    def due(self) -> DeliveryQuerySet:
        """Return the unclaimed deliveries to send now, at most the oldest of each resource.

        Expired claims, such as the claim of a killed process, do not count.
        """
        now = timezone.now()
        of_resource = Delivery.objects.waiting().filter(
            endpoint_id=models.OuterRef("endpoint_id"), resource_id=models.OuterRef("resource_id")
        )
        # PostgreSQL would convert ``NOT EXISTS (an older delivery)`` to a join. While the queue is
        # empty, it estimates one row, and later compares each of thousands of rows with all others.
        oldest = models.Subquery(of_resource.order_by("id").values("id")[:1])
        return self.waiting().filter(id=oldest, next_attempt_at__lte=now)


class Delivery(models.Model):
    """The delivery of an event to an endpoint. Ids follow the order of the audit log."""

    class Status(models.TextChoices):
        """The status of a delivery."""

        WAITING = "WAITING", "Waiting"
        DELIVERED = "DELIVERED", "Delivered"
        FAILED = "FAILED", "Failed"

    id = models.BigAutoField(primary_key=True)
    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    event = models.ForeignKey(WebhookEvent, on_delete=models.PROTECT, related_name="deliveries")
    # Copied from the event, because the events of a resource are sent in order.
    resource_id = models.CharField(max_length=100)
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    # The expiry of the claim if the delivery is claimed.
    next_attempt_at = models.DateTimeField(null=True, default=timezone.now)
    # The claim of the process that sends the delivery, or sent it last.
    claim: models.UUIDField[uuid.UUID | None, uuid.UUID | None] = models.UUIDField(null=True)
    last_attempt_at = models.DateTimeField(null=True)
    # The last HTTP status; null without a response. The response body is not stored.
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
