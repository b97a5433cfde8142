"""Admin pages of clusters: health, workloads, name and report interval."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.db.models.functions import Now
from django.utils.html import format_html
from django.utils.timesince import timesince

from apikeys.actors import Actor
from infra_service.lib.admin import EditableAdmin
from infra_service.lib.admin.change_list import AFTER, BEFORE, ORDER, KeysetChangeList
from infra_service.lib.admin.moments import moment_of
from infra_service.lib.admin.templatetags.moments import relative
from infra_service.lib.database.bounded_pages.segments import Segment
from workloads import actions
from workloads.admin.figures import counts_bar, cpu_bar, mark, memory_bar
from workloads.admin.filters import (
    WORST_FIRST,
    ClusterHealthFilter,
    ReportsFilter,
    cluster_id_of,
)
from workloads.cluster_health import (
    ClusterHealth,
    cluster_health,
    collection_status,
    failing_since,
    is_in_health,
)
from workloads.collection import CollectionStatus
from workloads.models import Cluster, Workload
from workloads.summaries import summarize

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from django.contrib.admin.views.main import ChangeList
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

    from workloads.models import ClusterQuerySet

#: The maximum number of clusters on a single page ordered by health.
MOST_AT_ONCE: Final = 150
#: The maximum number of namespaces on the page of a cluster, the least healthy first.
NAMESPACES: Final = 20
_COUNTS: Final = ("healthy", "degraded", "error", "unspecified")


@admin.register(Cluster)
class ClusterAdmin(EditableAdmin):
    """Admin pages of clusters, the least healthy first. Long lists are paginated."""

    when_empty = "Add a cluster, then install its agent or run manage.py sync_workloads."
    change_form_template = "admin/workloads/cluster/change_form.html"
    page_key = ("name",)
    list_display = ("name", "health", "workloads", "collection", "last_report")
    orders: ClassVar[Any] = {"name": ("name",)}
    list_filter = (ClusterHealthFilter, ReportsFilter)
    search_fields = ("name",)
    search_help_text = "Part of the name, or an id."
    fields = (
        "name", "report_interval_seconds", "health", "workloads", "collection", "last_report",
        "last_snapshot", "last_failure", "collector_version", "id", "uid", "created",
        "updated",
    )  # fmt: skip
    readonly_fields = fields[2:]
    last_report = moment_of("last_received_at", "last report", absent="never")
    last_snapshot = moment_of("last_snapshot_at", "last snapshot", absent="never")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Cluster]:
        """Return the clusters, with the database's current time as ``read_at``."""
        clusters: ClusterQuerySet = super().get_queryset(request)  # type: ignore[assignment]
        return clusters.timed()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:  # noqa: ARG002 - Django's signature
        """Return the change list that orders clusters by health."""
        return ClustersByTrouble

    def found(self, queryset: QuerySet[Cluster], term: str) -> QuerySet[Cluster]:
        """Return the cluster with this id, or the clusters whose names contain the text.

        A scan is fast, because there are few clusters.
        """
        cluster_id = cluster_id_of(term)
        if cluster_id is not None:
            return queryset.filter(pk=cluster_id)
        return queryset.filter(name__icontains=term)

    def segments(self, key: Sequence[str], params: Mapping[str, str]) -> Sequence[Segment]:
        """Return one segment per health, from worst to best, each ordered by name.

        If the request specifies an order, return a single segment.
        """
        if params.get(ORDER, "").removeprefix("-") in self.orders:
            return super().segments(key, params)
        return [Segment(is_in_health(health, Now()), key) for health in WORST_FIRST]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)

    def get_deleted_objects(
        self, objs: Iterable[Cluster], _request: HttpRequest
    ) -> tuple[list[Any], dict[Any, int], set[str], list[str]]:
        """Return the names of the clusters to delete, and the number of their workloads."""
        clusters = list(objs)
        workloads = sum(cluster.workload_counts()["total"] for cluster in clusters)
        names: list[Any] = [str(cluster) for cluster in clusters]
        return names, {"clusters": len(clusters), "workloads": workloads}, set(), []

    def delete_model(self, request: HttpRequest, obj: Cluster) -> None:
        actions.delete_cluster(cluster_id=obj.pk, actor=Actor.of_person(request))

    def create(self, fields: Mapping[str, Any], actor: Actor) -> Cluster:
        return actions.create_cluster(fields=fields, actor=actor)

    def update(self, obj: Cluster, changes: Mapping[str, Any], actor: Actor) -> None:
        actions.change_cluster(cluster_id=obj.pk, changes=changes, actor=actor)

    @admin.display(description="health")
    def health(self, cluster: Cluster) -> str:
        """Return the cluster's health at the time when the row was read."""
        return mark(cluster_health(cluster, cluster.read_at))

    @admin.display(description="workloads")
    def workloads(self, cluster: Cluster) -> str:
        """Show the workload counts, and their age if the cluster is unreachable."""
        bar = counts_bar(f"health-{cluster.pk}", cluster.workload_counts())
        return format_html("{}{}", bar, as_of(cluster))

    @admin.display(description="collection")
    def collection(self, cluster: Cluster) -> str:
        """Show the collection status, with the reason and start of a failure."""
        status = collection_status(cluster, cluster.read_at)
        since = failing_since(cluster)
        if status is not CollectionStatus.FAILING or since is None:
            return mark(status)
        reason = cluster.collection_error_reason.replace("_", " ").lower()
        return format_html(
            "{}: {}, for {}", mark(status), reason, timesince(since, cluster.read_at, depth=1)
        )

    @admin.display(description="last failure")
    def last_failure(self, cluster: Cluster) -> str:
        """Show the collector's last failure, even after it recovered."""
        if cluster.collection_error_at is None:
            return "none"
        return format_html(
            "{}: {} {}: {}",
            relative(cluster.collection_error_at),
            cluster.collection_error_reason,
            cluster.collection_error_resource,
            cluster.collection_error_message,
        )

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Render the cluster with a summary of its workloads."""
        cluster: Cluster | None = context.get("original")
        if cluster is not None:
            context |= {
                **_overview(cluster),
                "health": self.health(cluster),
                "collection": self.collection(cluster),
                "last_report": self.last_report(cluster),
                "counts": counts_bar("counts", cluster.workload_counts()),
                "as_of": as_of(cluster),
            }
        return super().render_change_form(request, context, *args, **kwargs)


def as_of(cluster: Cluster) -> str:
    """Return the time of an unreachable cluster's last report; empty for other clusters."""
    if cluster_health(cluster, cluster.read_at) is not ClusterHealth.UNREACHABLE:
        return ""
    return format_html('<span class="quiet">as of {}</span>', relative(cluster.last_received_at))  # type: ignore[arg-type]  # it has reported


class ClustersByTrouble(KeysetChangeList):
    """A list of clusters: one page ordered by health, or several pages for many clusters."""

    def get_results(self, request: HttpRequest) -> None:
        """Load all clusters if they fit on one page; otherwise load a page."""
        clusters: list[Any] = []
        if not {AFTER, BEFORE, ORDER} & set(request.GET):
            clusters = list(self.queryset.order_by("name")[: MOST_AT_ONCE + 1])
        if not clusters or len(clusters) > MOST_AT_ONCE:
            super().get_results(request)
            return
        clusters.sort(key=_cluster_trouble)
        self.show_results(clusters)


def _cluster_trouble(cluster: Any) -> tuple[int, int, int, str]:
    health = cluster_health(cluster, cluster.read_at)
    counts = cluster.workload_counts()
    return WORST_FIRST.index(health), -counts["error"], -counts["degraded"], cluster.name


def _overview(cluster: Cluster) -> dict[str, Any]:
    """Return the cluster's usage and workload counts, by kind and for the worst namespaces."""
    summary = summarize(Workload.objects.filter(cluster=cluster), by="namespace")
    by: dict[str, dict[str, dict[str, int]]] = {"kind": {}, "namespace": {}}
    for group in summary["groups"]:
        for what, rows in by.items():
            counts = rows.setdefault(group[what], defaultdict(int))
            status = group["health_status"].removeprefix("WORKLOAD_HEALTH_STATUS_").lower()
            for name in ("total", status):
                counts[name] += group["workloads"]
    worst = sorted(by["namespace"].items(), key=_trouble)
    total = summary["total"]
    return {
        "kinds": list(_rows("kind", sorted(by["kind"].items()))),
        "namespaces": list(_rows("namespace", worst[:NAMESPACES])),
        "namespaces_left_out": max(len(worst) - NAMESPACES, 0),
        "cpu": cpu_bar("cpu", total["cpu_requests_millicores"], total["cpu_used_millicores"]),
        "memory": memory_bar("memory", total["memory_requests_bytes"], total["memory_used_bytes"]),
        "managed": f"{total['workloads_managed']:,} of {total['workloads']:,}",
    }


def _trouble(entry: tuple[str, dict[str, int]]) -> tuple[int, int, int, str]:
    name, counts = entry
    return -counts["error"], -counts["degraded"], -counts["total"], name


def _rows(what: str, entries: Iterable[tuple[str, dict[str, int]]]) -> Iterable[dict[str, Any]]:
    for number, (name, counts) in enumerate(entries):
        bar = counts_bar(f"{what}-{number}", {label: counts[label] for label in _COUNTS})
        yield {"name": name, "total": counts["total"], "bar": bar}
