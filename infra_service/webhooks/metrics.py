"""Prometheus metrics of waiting deliveries: three figures, read at each scrape."""

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
    """How many deliveries wait, since when the oldest one does, and how far the trail is read."""

    def collect(self) -> Iterator[Metric]:
        """Return the figures."""
        waiting = Delivery.objects.waiting().aggregate(number=Count("pk"), oldest=Min("created_at"))
        # Of the trail that was read once, and is for nobody any more, nothing is late.
        unread_since = audit_reader.unread_since() if WebhookEndpoint.objects.exists() else None
        yield GaugeMetricFamily(
            "infra_webhook_deliveries_waiting",
            "Deliveries to webhooks that wait, for their first or a later attempt.",
            waiting["number"],
        )
        yield GaugeMetricFamily(
            "infra_webhook_oldest_waiting_seconds",
            "How long the oldest of them has waited; 0 where there is none.",
            _age(waiting["oldest"]),
        )
        yield GaugeMetricFamily(
            "infra_webhook_unread_trail_seconds",
            "Age of the first event of the trail that was not read yet; 0 without one.",
            _age(unread_since),
        )


def _age(moment: dt.datetime | None) -> float:
    """Return its seconds; none of a moment on a clock that is ahead."""
    return 0.0 if moment is None else max(0.0, (timezone.now() - moment).total_seconds())
