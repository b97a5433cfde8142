"""Prometheus metrics of waiting deliveries: three gauges, read at each scrape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Count, Min
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from infra_service.webhooks import audit_reader
from infra_service.webhooks.models import Delivery, WebhookEndpoint

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from prometheus_client import Metric


class DeliveryCollector(Collector):
    """The number and age of waiting deliveries, and the lag of the audit log reader."""

    def collect(self) -> Iterator[Metric]:
        waiting = Delivery.objects.waiting().aggregate(number=Count("pk"), oldest=Min("created_at"))
        # Without endpoints, the reader stops and its lag has no meaning.
        unread_since = audit_reader.unread_since() if WebhookEndpoint.objects.exists() else None
        yield GaugeMetricFamily(
            "infra_webhook_deliveries_waiting",
            "Pending webhook deliveries, waiting for their first attempt or a retry.",
            waiting["number"],
        )
        yield GaugeMetricFamily(
            "infra_webhook_oldest_waiting_seconds",
            "Age of the oldest pending message; 0 if no message is pending.",
            _age(waiting["oldest"]),
        )
        yield GaugeMetricFamily(
            "infra_webhook_unread_trail_seconds",
            "Age of the first unread event of the audit log; 0 if all events are read.",
            _age(unread_since),
        )


def _age(moment: dt.datetime | None) -> float:
    """Return the age in seconds, or 0 if the time is missing or in the future."""
    return 0.0 if moment is None else max(0.0, (timezone.now() - moment).total_seconds())
