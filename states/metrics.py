"""Prometheus metrics of pushes, bytes, locks, freezes, checks and the resource index.

Another metric counts refused requests by the reasons of their errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Count, Min, Q
from django.utils import timezone
from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from states import index_lag
from states.models import State

if TYPE_CHECKING:
    from collections.abc import Iterator

_PUSHES: Final = Counter("infra_state_pushes", "Accepted pushes.", ["result"])
STORED: Final = _PUSHES.labels("stored")
UNCHANGED: Final = _PUSHES.labels("unchanged")
STORAGE_FAULTS: Final = Counter(
    "infra_storage_faults",
    "Fetched objects that are missing, damaged, or altered by the store. Missing counts once per "
    "read, and the other faults count each attempt.",
    ["fault"],
)
for _fault in ("missing", "altered", "damaged"):
    STORAGE_FAULTS.labels(_fault)  # starts at 0, so that an alert sees the first fault
PUSHED_BYTES: Final = Counter("infra_state_pushed_bytes", "Bytes of completely received documents.")
PULLED_BYTES: Final = Counter(
    "infra_state_pulled_bytes", "Bytes of sent documents, compressed if the client accepts gzip."
)

#: Maximum rows to read, so that scrapes stay fast. Locks exist only during Terraform runs, so
#: higher numbers are unusual.
MAX_LOCKS: Final = 10_000


class LockCollector(Collector):
    """Metrics of locked states, from a single query that uses an index on locked states."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the number of locks, and the age of the oldest lock."""
        held = State.objects.visible().filter(lock_id__isnull=False).order_by("pk")[:MAX_LOCKS]
        found = held.aggregate(count=Count("pk"), oldest=Min("lock_acquired_at"))
        age = (timezone.now() - found["oldest"]).total_seconds() if found["oldest"] else 0.0
        yield GaugeMetricFamily(
            "infra_state_locks", "States that are locked, up to 10,000.", found["count"]
        )
        yield GaugeMetricFamily(
            "infra_state_oldest_lock_age_seconds",
            "Age of the oldest lock, among up to 10,000; 0 if no state is locked.",
            age,
        )


class FreezeCollector(Collector):
    """Metrics of frozen states, from a single query that uses an index on frozen states."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the number of frozen states, and the number of overdue freezes."""
        frozen = State.objects.frozen().order_by("pk")[:MAX_LOCKS]
        overdue = Count("pk", filter=Q(freeze_expected_until__lt=timezone.now()))
        found = frozen.aggregate(count=Count("pk"), overdue=overdue)
        yield GaugeMetricFamily(
            "infra_state_freezes", "States that are frozen, up to 10,000.", found["count"]
        )
        yield GaugeMetricFamily(
            "infra_state_overdue_freezes",
            "States that are frozen after the expected end of their freeze, up to 10,000.",
            found["overdue"],
        )


class CheckCollector(Collector):
    """Metrics of states with failing checks and of encrypted states, each from its own index."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the numbers of these states, up to ``MAX_LOCKS``."""
        for name, meaning, states in (
            (
                "infra_state_failing_checks",
                "States with a failing check block, up to 10,000.",
                State.objects.with_failing_checks(),
            ),
            (
                "infra_state_client_encrypted",
                "States that are encrypted on the client, up to 10,000.",
                State.objects.client_encrypted(),
            ),
        ):
            yield GaugeMetricFamily(name, meaning, states.order_by("pk")[:MAX_LOCKS].count())


class IndexCollector(Collector):
    """Metrics of the resource index, from database indexes on waiting and unreadable states."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the numbers of waiting and unreadable states, and the longest waiting time."""
        found = index_lag.lag_of(State.objects.all())
        unreadable = State.objects.unreadable().order_by("pk")[: index_lag.MOST]
        yield GaugeMetricFamily(
            "infra_index_waiting_states",
            "States whose current version is not in the resource index, up to 10,000.",
            found.waiting,
        )
        yield GaugeMetricFamily(
            "infra_index_oldest_wait_seconds",
            "Age of the oldest current version that is not in the index; 0 if all are indexed.",
            found.oldest_seconds,
        )
        yield GaugeMetricFamily(
            "infra_index_unreadable_states",
            "States with a document that cannot be indexed, up to 10,000.",
            unreadable.count(),
        )
