from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin import SimpleListFilter
from django.db.models.functions import Now

from infra_service.lib.admin.choice_filter import ChoiceFilter
from infra_service.lib.admin.input_filters import InputFilter
from infra_service.lib.api.identifiers import parse_uuid
from workloads.cluster_health import ClusterHealth, is_in_health, is_silent
from workloads.models import KINDS, Cluster, Workload
from workloads.signs import word
from workloads.worst_first import MOST_TROUBLE_FIRST

if TYPE_CHECKING:
    import uuid

    from django.http import HttpRequest

#: The maximum number of names suggested while an operator types.
MOST_CLUSTERS: Final = 100
MOST_NAMESPACES: Final = 100
WORST_FIRST: Final = (
    ClusterHealth.ERROR, ClusterHealth.UNREACHABLE, ClusterHealth.DEGRADED, ClusterHealth.PENDING,
    ClusterHealth.HEALTHY,
)  # fmt: skip


class ClusterHealthFilter(SimpleListFilter):
    """A filter for clusters by their current health."""

    title = "health"
    parameter_name = "health"

    def lookups(self, *_args: Any) -> list[tuple[str, str]]:
        return [(status.value, word(status)) for status in WORST_FIRST]

    def queryset(self, _request: Any, queryset: Any) -> Any:
        for health in ClusterHealth:
            if self.value() == health:
                return queryset.filter(is_in_health(health, Now()))
        return queryset


class ReportsFilter(SimpleListFilter):
    """A filter for clusters without current reports."""

    title = "reports"
    parameter_name = "reports"

    def lookups(self, *_args: Any) -> list[tuple[str, str]]:
        return [("missing", "Missing")]

    def queryset(self, _request: Any, queryset: Any) -> Any:
        """Return the clusters without current reports if the operator chose them."""
        return queryset.filter(is_silent(Now())) if self.value() == "missing" else queryset


class ClusterFilter(InputFilter):
    """A filter by the name or id of a cluster."""

    title = "cluster"
    parameter_name = "cluster"

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self.cluster = chosen_cluster(self.typed_text)

    def suggested(self, request: HttpRequest) -> list[str]:
        """Return the names of the first clusters, in alphabetical order."""
        del request
        names = Cluster.objects.order_by("name").values_list("name", flat=True)
        return list(names[:MOST_CLUSTERS])

    @property
    def typed_text(self) -> str:
        """Return the name or id that the operator typed."""
        return str(self.value() or "").strip()

    @property
    def text(self) -> str:
        """Return the cluster's name, even if the operator typed its id."""
        return self.cluster.name if self.cluster else self.typed_text

    def queryset(self, _request: Any, queryset: Any) -> Any:
        if self.cluster is None:
            return queryset.none() if self.typed_text else queryset
        return queryset.filter(cluster_id=self.cluster.pk)


class HealthFilter(ChoiceFilter):
    """A filter for workloads by health, which is the first column of an index."""

    title = parameter_name = "health"
    column = "health_status"
    offered = tuple((status.value, word(status)) for status in MOST_TROUBLE_FIRST)


class KindFilter(ChoiceFilter):
    title = parameter_name = column = "kind"
    offered = KINDS


class NamespaceFilter(InputFilter):
    title = "namespace"
    parameter_name = "namespace"

    def suggested(self, request: HttpRequest) -> list[str]:
        """Return the first namespaces of the chosen cluster, in alphabetical order."""
        cluster = chosen_cluster(request.GET.get(ClusterFilter.parameter_name, "").strip())
        if cluster is None:
            return []
        rows = Workload.objects.filter(cluster_id=cluster.pk).order_by("namespace")
        return list(rows.values_list("namespace", flat=True).distinct()[:MOST_NAMESPACES])

    def typed(self, queryset: Any, text: str, request: HttpRequest) -> Any:
        del request
        return queryset.filter(namespace=text)


def chosen_cluster(text: str) -> Cluster | None:
    """Return the cluster with this name or id, or None."""
    if not text or "\0" in text:
        return None
    cluster_id = cluster_id_of(text)
    clusters = Cluster.objects.timed()
    found = clusters.filter(name=text) if cluster_id is None else clusters.filter(pk=cluster_id)
    return found.first()


def cluster_id_of(text: str | None) -> uuid.UUID | None:
    return parse_uuid(text) if text else None
