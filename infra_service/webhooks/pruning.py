"""Retention of deliveries, their events, and the disabled periods of endpoints."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from django.utils import timezone

from infra_service.lib.database.batches import remove_in_batches
from infra_service.webhooks.models import Delivery, DisabledPeriod, WebhookEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The retention of deliveries, during which they can be inspected and redelivered.
KEPT: Final = dt.timedelta(days=30)


def prune() -> Iterator[int]:
    """Delete old deliveries that are not waiting, and yield the number deleted in each batch."""
    before = timezone.now() - KEPT
    ended = Delivery.objects.filter(created_at__lt=before).exclude(status=Delivery.Status.WAITING)
    yield from remove_in_batches(ended, "pk")
    expired = WebhookEvent.objects.filter(created_at__lt=before, deliveries=None)
    for _ in remove_in_batches(expired, "created_at"):
        yield 0
    periods = DisabledPeriod.objects.filter(ended_at__lt=before)
    for _ in remove_in_batches(periods, "ended_at"):
        yield 0
