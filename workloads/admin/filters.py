from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin import SimpleListFilter
from django.db.models.functions import Now

from infra_service.api.identifiers import parse_uuid
from workloads.cluster_health import ClusterHealth, is_in_health, is_silent
from workloads.kubernetes.health import HealthStatus
from workloads.models import Cluster, Workload
from workloads.signs import word

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    from django.contrib.admin.views.main import ChangeList
    from django.http import HttpRequest

#: Clusters, and namespaces of one, to choose from; what is beyond is found by a search.
MOST_CLUSTERS: Final = 30
MOST_NAMESPACES: Final = 12


class ClusterHealthFilter(SimpleListFilter):
    """The health that clusters are judged to have now."""

    title = "health"
    parameter_name = "health"

    def lookups(self, *_args: Any) -> list[tuple[str, str]]:
        health = ClusterHealth
        worst_first = (
            health.ERROR, health.UNREACHABLE, health.DEGRADED, health.PENDING, health.HEALTHY
        )  # fmt: skip
        return [(status.value, word(status)) for status in worst_first]

    def queryset(self, _request: Any, queryset: Any) -> Any:
        for health in ClusterHealth:
            if self.value() == health:
                return queryset.filter(is_in_health(health, Now()))
        return queryset


class ReportsFilter(SimpleListFilter):
    """Whether reports come."""

    title = "reports"
    parameter_name = "reports"

    def lookups(self, *_args: Any) -> list[tuple[str, str]]:
        return [("missing", "None come")]

    def queryset(self, _request: Any, queryset: Any) -> Any:
        """Return the clusters that are silent, or cannot be read."""
        return queryset.filter(is_silent(Now())) if self.value() == "missing" else queryset


class ClusterFilter(SimpleListFilter):
    """The cluster; without one there is no list, because every index begins with it."""

    title = "cluster"
    parameter_name = "cluster"

    def lookups(self, *_args: Any) -> list[tuple[str, str]]:
        """Return the one that is chosen, else the first by name."""
        clusters = Cluster.objects.only("name").order_by("name")
        if self.cluster_id is not None:
            clusters = clusters.filter(pk=self.cluster_id)
        return [(str(cluster.pk), cluster.name) for cluster in clusters[:MOST_CLUSTERS]]

    def has_output(self) -> bool:
        """Apply it always: Django leaves out a filter that has nothing to choose from."""
        return True

    @property
    def cluster_id(self) -> uuid.UUID | None:
        """The chosen cluster's id."""
        return cluster_id_of(self.value())

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Yield the clusters; there is no choice of all."""
        yield from list(super().choices(changelist))[1:]

    def queryset(self, _request: Any, queryset: Any) -> Any:
        if self.cluster_id is None:
            return queryset.none()
        return queryset.filter(cluster_id=self.cluster_id)


class HealthFilter(SimpleListFilter):
    """The health of workloads; with the cluster it leads an index."""

    title = "health"
    parameter_name = "health"

    def lookups(self, *_args: Any) -> list[tuple[str, str]]:
        worst_first = reversed(HealthStatus)
        return [(status.value, word(status)) for status in worst_first]

    def queryset(self, _request: Any, queryset: Any) -> Any:
        return queryset.filter(health_status=self.value()) if self.value() else queryset


class NamespaceFilter(SimpleListFilter):
    """The first namespaces of the cluster by name, and the one that is chosen."""

    title = "namespace"
    parameter_name = "namespace"

    def lookups(self, request: HttpRequest, *_args: Any) -> list[tuple[str, str]]:
        """Return the choices, which the cluster decides."""
        cluster_id = cluster_id_of(request.GET.get(ClusterFilter.parameter_name))
        if cluster_id is None:
            return []
        rows = Workload.objects.filter(cluster_id=cluster_id).order_by("namespace")
        names = list(rows.values_list("namespace", flat=True).distinct()[:MOST_NAMESPACES])
        chosen = self.value()
        if chosen and chosen not in names:
            names.append(chosen)
        return [(name, name) for name in names]

    def queryset(self, _request: Any, queryset: Any) -> Any:
        return queryset.filter(namespace=self.value()) if self.value() else queryset


def cluster_id_of(text: str | None) -> uuid.UUID | None:
    """Return the id that the text is, or None."""
    return parse_uuid(text) if text else None
