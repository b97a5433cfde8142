"""Record the health transitions in a report, and the gap before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import OuterRef, Subquery
from django.utils import timezone

from infra_service.lib.database.bulk import NewRow, Writer, batches
from workloads.cluster_health import report_timeout, seen_until
from workloads.history import MOST_TRANSITIONS
from workloads.models import ReportGap, Transition, Workload

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Sequence

    from workloads.models import Cluster

# The maximum number of workloads per statement.
_PAGE: Final = 2000
_KEY: Final = ("workload_id", "number")
_INSERTS: Final = Writer(
    Transition,
    (
        *_KEY, "cluster_id", "since", "at", "received_at", "from_health_status",
        "to_health_status", "status_reason",
    ),
)  # fmt: skip
_KEYS: Final = Writer(Transition, _KEY)


class Transitions:
    """The transitions of a cluster's workloads in a report, at the time of the report."""

    def __init__(self, cluster_id: uuid.UUID, at: dt.datetime) -> None:
        self._cluster_id, self._at, self._received_at = cluster_id, at, timezone.now()
        # Existing workloads with their previous health, new health (None if deleted) and reason.
        self._pending: dict[uuid.UUID, tuple[str, str | None, str]] = {}
        self._rows: list[NewRow] = []
        self._superseded: list[Sequence[Any]] = []

    def appear(self, workload_id: uuid.UUID, health: str, reason: str) -> None:
        """Record a new workload."""
        self._add(workload_id, 1, None, (None, health, reason))

    def change(self, workload_id: uuid.UUID, before: str, health: str, reason: str) -> None:
        """Record a new health, or a new reason for the same health."""
        self._pending[workload_id] = (before, health, reason)

    def disappear(self, workload_id: uuid.UUID, before: str) -> None:
        """Record a deleted workload."""
        self._pending[workload_id] = (before, None, "")

    def prepare(self) -> None:
        """Load the starts and numbers of the transitions, before the transaction.

        The result is valid when the report is written, because the claim fails if another report
        was written since.
        """
        # Filter both tables by cluster, because a distributed database shards them by cluster.
        of_cluster = Transition.objects.filter(cluster_id=self._cluster_id)
        newest = of_cluster.filter(workload_id=OuterRef("pk")).order_by("-number")
        numbers = Subquery(newest.values("number")[:1])
        for keys in batches(list(self._pending), _PAGE):
            found = Workload.objects.filter(cluster=self._cluster_id, pk__in=keys)
            for key, since, number in found.values_list("pk", "health_since", numbers):
                self._add(key, (number or 0) + 1, since, self._pending.pop(key))

    def write(self) -> None:
        """Write the transitions, and delete the oldest beyond the limit of each workload."""
        _INSERTS.insert(self._rows)
        _KEYS.delete(self._superseded, cluster_id=self._cluster_id)

    def _add(
        self,
        workload_id: uuid.UUID,
        number: int,
        since: dt.datetime | None,
        change: tuple[str | None, str | None, str],
    ) -> None:
        moments = (since, self._at, self._received_at)
        row = (workload_id, number, self._cluster_id, *moments, *change)
        self._rows.append(_INSERTS.new_row(row))
        if number > MOST_TRANSITIONS:
            self._superseded.append(_KEYS.prepare((workload_id, number - MOST_TRANSITIONS)))


def gap_before(cluster: Cluster, observed_at: dt.datetime) -> ReportGap | None:
    """Return the period without reports if the cluster's last report is too old, or None."""
    last = seen_until(cluster)
    if last is None or observed_at - last <= report_timeout(cluster):
        return None
    return ReportGap(cluster_id=cluster.pk, began_at=last, ended_at=observed_at)
