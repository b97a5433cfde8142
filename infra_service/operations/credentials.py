"""Keys and tokens that expire soon, for Prometheus: two counts of an index, at each scrape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from apikeys.models import AccessToken, ApiKey
from apikeys.querysets import SOON

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Rows that are counted at most.
MOST: Final = 10_000


class CredentialCollector(Collector):
    """How many keys and issued tokens work now and expire within 30 days."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return their numbers, by kind."""
        expiring = GaugeMetricFamily(
            "infra_credentials_expiring",
            f"API keys and issued tokens that work and expire within {SOON.days} days.",
            labels=["kind"],
        )
        for kind, model in (("api_key", ApiKey), ("access_token", AccessToken)):
            found = model.objects.issued().expiring().order_by()[:MOST]
            expiring.add_metric([kind], found.count())
        yield expiring
