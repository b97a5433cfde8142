"""Retention of deliveries, their events, and the disabled periods of endpoints."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from django.utils import timezone

from infra_service.webhooks.models import Delivery, DisabledPeriod, WebhookEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The retention of deliveries, during which they can be inspected and redelivered.
KEPT: Final = dt.timedelta(days=30)
_ROWS: Final = 500


def prune() -> Iterator[int]:
    """Delete old deliveries that are not waiting, and yield the number deleted in each batch."""
    before = timezone.now() - KEPT
    ended = Delivery.objects.filter(created_at__lt=before).exclude(status=Delivery.Status.WAITING)
    while ids := list(ended.order_by("pk").values_list("pk", flat=True)[:_ROWS]):
        # The condition excludes a delivery that is redelivered in the meantime.
        yield ended.filter(pk__in=ids).delete()[0]
    expired = WebhookEvent.objects.filter(created_at__lt=before, deliveries=None)
    while old := list(expired.order_by("created_at").values_list("pk", flat=True)[:_ROWS]):
        WebhookEvent.objects.filter(pk__in=old).delete()
        yield 0
    periods = DisabledPeriod.objects.filter(ended_at__lt=before)
    while past := list(periods.order_by("ended_at").values_list("pk", flat=True)[:_ROWS]):
        DisabledPeriod.objects.filter(pk__in=past).delete()
        yield 0
