"""Undelivered webhook messages."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, Q
from django.utils import timezone

from infra_service.console.overview.counting import EXACT, MOST, SHOWN, Number, up_to
from infra_service.webhooks.models import LATE_AFTER, Delivery

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Retries end after three days, so this includes all deliveries that failed in the last four days.
_MADE_WITHIN: Final = dt.timedelta(days=7)


def undelivered() -> tuple[Number, Number, Sequence[Delivery]]:
    """Return the numbers of late and of recently failed deliveries, and the first rows.

    The failed deliveries exclude deliveries to disabled webhooks. The search for late deliveries
    reads the next deliveries to send, which are few while a worker runs. The search for failed
    deliveries reads only the newest failed deliveries.
    """
    now = timezone.now()
    is_late, is_recent = Q(created_at__lt=now - LATE_AFTER), Q(created_at__gt=now - _MADE_WITHIN)
    waiting = Delivery.objects.waiting().order_by("next_attempt_at", "id")[: EXACT + 1]
    given_up = Delivery.objects.failed().filter(endpoint__disabled_at=None).order_by("-id")
    failed = given_up[: MOST + 1]
    late_number, failed_number = _number_of(waiting, is_late), _number_of(failed, is_recent)
    rows: list[Delivery] = []
    if failed_number.value:
        rows += given_up.filter(is_recent).for_display()[:SHOWN]
    if late_number.value:
        rows += Delivery.objects.late().for_display().order_by("next_attempt_at", "id")[:SHOWN]
    return late_number, failed_number, rows[:SHOWN]


def _number_of(looked_at: Any, condition: Q) -> Number:
    counted = looked_at.aggregate(found=Count("pk", filter=condition))
    return up_to(MOST, counted["found"])
