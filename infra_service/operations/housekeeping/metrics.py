"""Prometheus metrics of housekeeping: a few rows, read at each scrape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from infra_service.lib.database.postgresql.partitions import months_ready
from infra_service.models import HousekeepingPart
from infra_service.operations.housekeeping.parts import PARTITIONED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric


class HousekeepingCollector(Collector):
    """The last success, duration and removed objects of each part, and upcoming partitions."""

    def collect(self) -> Iterator[Metric]:
        success = GaugeMetricFamily(
            "infra_housekeeping_last_success_timestamp_seconds",
            "Time of the last complete run of the part, or of its setup before the first run.",
            labels=["part"],
        )
        seconds = GaugeMetricFamily(
            "infra_housekeeping_duration_seconds",
            "Duration of the part's last run.",
            labels=["part"],
        )
        removed = CounterMetricFamily(
            "infra_housekeeping_removed", "Total number of removed objects.", labels=["part"]
        )
        for part in HousekeepingPart.objects.order_by("name"):
            success.add_metric([part.name], part.succeeded_at.timestamp())
            seconds.add_metric([part.name], part.seconds)
            removed.add_metric([part.name], part.removed)
        ready = GaugeMetricFamily(
            "infra_partitions_ready",
            "Number of upcoming months for which the table has partitions; 3 if all are created.",
            labels=["table"],
        )
        for table in PARTITIONED if connection.vendor == "postgresql" else ():
            ready.add_metric([table], months_ready(table))
        yield from (success, seconds, removed, ready)
