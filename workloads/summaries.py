"""Sum the figures of workloads by namespace or cluster, kind and health."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, Sum
from django.db.models.functions import Coalesce

from workloads.kubernetes import figures
from workloads.kubernetes.health import HealthStatus
from workloads.managed import managing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from workloads.models import Workload

#: The columns of a group after the namespace or cluster.
GROUPED: Final = ("kind", "health_status")
#: The number of workloads, and the number of workloads with known usage.
COUNTS: Final = ("workloads", "workloads_measured")
#: The numbers of workloads that states manage and do not manage.
MANAGED: Final = ("workloads_managed", "workloads_unmanaged")
#: The maximum number of workloads in all clusters for which ``MANAGED`` is counted. Each workload
#: costs 5 to 10 µs.
MOST_JOINED: Final = 20_000
SUMMED: Final = (
    "replicas_desired", "replicas_ready", "replicas_available",
    *(figure.name for figure in figures.FIGURES),
)  # fmt: skip
#: Figures that are null if they are unknown for all workloads of a group.
MEASURED: Final = tuple(figure.name for figure in figures.MEASURED)


class _WideSum(Sum):
    """A sum that may exceed 64 bits: numeric on PostgreSQL, real on SQLite."""

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return super().as_sql(compiler, connection, function="TOTAL", **context)


def summarize(workloads: QuerySet[Workload, Any], *, by: str) -> dict[str, Any]:
    """Return the groups, ordered by their columns, and their total.

    ``by`` is the first column of a group: ``namespace`` for a single cluster, or ``cluster_id`` for
    all clusters. In a summary of all clusters, the ``MANAGED`` counts are null if there are more
    than ``MOST_JOINED`` workloads.
    """
    columns = (by, *GROUPED)
    is_single_cluster = by == "namespace"
    managed = {MANAGED[0]: Count("id", filter=managing().is_managed())}
    rows = list(
        workloads.order_by()
        .values(*columns)
        .annotate(
            workloads=Count("id"),
            workloads_measured=Count(Coalesce(*MEASURED)),
            **(managed if is_single_cluster else {}),
            **{f"known_{name}": Count(name) for name in MEASURED},
            **{f"sum_{name}": _WideSum(name) for name in SUMMED},
        )
        .order_by(*columns)
    )
    if not is_single_cluster and sum(row["workloads"] for row in rows) <= MOST_JOINED:
        counted = workloads.order_by().filter(managing().is_managed()).values(*columns)
        found = {
            tuple(row[name] for name in columns): row["number"]
            for row in counted.annotate(number=Count("id"))
        }
        for row in rows:
            # A workload may be inserted between the two statements.
            number = found.get(tuple(row[name] for name in columns), 0)
            row[MANAGED[0]] = min(number, row["workloads"])
    groups = [_group(row, columns) for row in rows]
    return {"total": _total(groups), "groups": groups}


def _group(row: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    counts: dict[str, Any] = {name: row[name] for name in COUNTS}
    managed = row.get(MANAGED[0])
    unmanaged = None if managed is None else row["workloads"] - managed
    counts |= zip(MANAGED, (managed, unmanaged), strict=True)
    sums = {
        name: int(row[f"sum_{name}"]) if row.get(f"known_{name}", True) else None for name in SUMMED
    }
    return {**{name: row[name] for name in columns}, **counts, **sums}


def _total(groups: Sequence[dict[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = dict.fromkeys((*COUNTS, *MANAGED), 0)
    total["by_health_status"] = {status.value: 0 for status in HealthStatus}
    total.update(dict.fromkeys(SUMMED, 0))
    for group in groups:
        total["by_health_status"][group["health_status"]] += group["workloads"]
        for name in (*COUNTS, *MANAGED, *SUMMED):
            total[name] += group[name] or 0
    for name in (*MANAGED, *MEASURED):
        if all(group[name] is None for group in groups) and (groups or name in MEASURED):
            total[name] = None
    return total
