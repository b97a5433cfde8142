"""Prometheus metrics of keys and tokens that expire soon: two bounded index counts per scrape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from apikeys.models import AccessToken, ApiKey
from apikeys.querysets import SOON

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The maximum count.
MOST: Final = 10_000


class CredentialCollector(Collector):
    """The number of active keys and issued tokens that expire within 30 days."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the numbers by kind."""
        expiring = GaugeMetricFamily(
            "infra_credentials_expiring",
            f"Active API keys and issued tokens that expire within {SOON.days} days.",
            labels=["kind"],
        )
        for kind, model in (("api_key", ApiKey), ("access_token", AccessToken)):
            found = model.objects.issued().expiring().order_by()[:MOST]
            expiring.add_metric([kind], found.count())
        yield expiring
