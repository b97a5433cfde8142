"""What waits to be told, for Prometheus: two figures, read at each scrape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Count, Min
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from infra_service.webhooks.models import Delivery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric


class DeliveryCollector(Collector):
    """How many deliveries wait, and since when the oldest one does."""

    def collect(self) -> Iterator[Metric]:
        """Return the figures."""
        waiting = Delivery.objects.waiting().aggregate(number=Count("pk"), oldest=Min("created_at"))
        oldest = waiting["oldest"]
        age = 0.0 if oldest is None else (timezone.now() - oldest).total_seconds()
        yield GaugeMetricFamily(
            "infra_webhook_deliveries_waiting",
            "Deliveries to webhooks that wait, for their first or a later attempt.",
            waiting["number"],
        )
        yield GaugeMetricFamily(
            "infra_webhook_oldest_waiting_seconds",
            "How long the oldest of them has waited; 0 where there is none.",
            age,
        )
