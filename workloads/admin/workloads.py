"""Admin pages of workloads: health, and usage compared with requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from django.contrib import admin, messages
from django.db.models import Q
from django.http import Http404
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from apikeys.bindings import EVERYWHERE
from infra_service.lib.admin import ReadOnlyAdmin
from infra_service.lib.admin.moments import moment_of
from infra_service.lib.admin.templatetags.words import breakable
from workloads.admin.clusters import as_of
from workloads.admin.figures import cpu_bar, cpu_text, mark, memory_bar, memory_text
from workloads.admin.filters import (
    ClusterFilter,
    HealthFilter,
    KindFilter,
    NamespaceFilter,
    chosen_cluster,
)
from workloads.admin.history import history_of
from workloads.kubernetes.images import ContainerImages, images_of, registry_of
from workloads.managed import managing
from workloads.models import Cluster, Workload
from workloads.reporting.errors import WorkloadNotFound
from workloads.worst_first import PLACE, by_health

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

    from infra_service.lib.database.bounded_pages.segments import Segment

#: The maximum number of words of a search.
MOST_WORDS: Final = 4


@admin.register(Workload)
class WorkloadAdmin(ReadOnlyAdmin):
    """Admin pages of workloads, ordered by health, cluster, namespace, name and kind."""

    when_empty = "Workloads appear when a cluster reports."
    change_form_template = "admin/workloads/workload/change_form.html"
    since = moment_of("health_since", "since")
    observed = moment_of("observed_at", "observed")
    change_list_template = "admin/workloads/workload/change_list.html"
    page_key = PLACE
    list_display = (
        "name", "cluster_name", "namespace", "kind", "health", "reason", "replicas", "cpu",
        "memory",
    )  # fmt: skip
    orders: ClassVar[Any] = {
        "name": ("name", "health_status", "cluster_id", "namespace", "kind"),
        "namespace": ("namespace", "health_status", "cluster_id", "name", "kind"),
    }
    list_filter = (ClusterFilter, HealthFilter, KindFilter, NamespaceFilter)
    search_fields = ("name",)
    search_help_text = "Parts of the name or the namespace, or namespace/name."
    fields = (
        "health", "reason", "since", "cluster", "namespace", "kind", "replicas",
        "cpu", "cpu_limits", "memory", "memory_limits", "uid", "id", "observed",
    )  # fmt: skip

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the age of the figures if the chosen cluster is unreachable."""
        cluster = chosen_cluster(request.GET.get(ClusterFilter.parameter_name, "").strip())
        chosen = {"chosen_cluster": cluster, "as_of": as_of(cluster) if cluster else ""}
        return super().changelist_view(request, {**chosen, **(extra_context or {})})

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add the history, images, latest changes and, with permission, managing resources."""
        workload: Workload = context["original"]
        try:
            context |= history_of(workload, Cluster.objects.timed().get(pk=workload.cluster_id))
        except (Cluster.DoesNotExist, WorkloadNotFound) as error:  # deleted in the meantime
            raise Http404 from error
        containers = msgspec.convert(workload.containers, list[ContainerImages])
        context["images"] = [
            {"registry": registry_of(image.repository), **image._asdict()}
            for image in images_of(containers)
        ]
        context["latest"] = self.admin_site.latest_changes(request.user, "workload", workload.pk)
        if request.user.has_perm("states.view_resourceentry"):
            context["managed_by"] = self._managed_by(workload, request.user)
        return super().render_change_form(request, context, *args, **kwargs)

    def _managed_by(self, workload: Workload, user: Any) -> list[dict[str, Any]]:
        """Return the managing resources, with the component and environment of each state."""
        rows = [one._asdict() for one in managing().managed_by(workload, EVERYWHERE)]
        for kind in ("component", "environment"):
            ids = {str(row[f"{kind}_id"]) for row in rows}
            names = self.admin_site.names_of(kind, ids, user)
            for row in rows:
                row[kind] = names.get(str(row[f"{kind}_id"]), row[f"{kind}_id"])
        return rows

    def segments(self, key: Sequence[str], params: Mapping[str, str]) -> Sequence[Segment]:
        """Return one segment per health, or one segment with a health filter or another order."""
        if HealthFilter.parameter_name in params or key[0].removeprefix("-") != PLACE[0]:
            return super().segments(key, params)
        return by_health(key)

    def prepare_page(self, request: HttpRequest, rows: Sequence[Workload]) -> None:
        """Load the clusters of a page in one query, with the database's current time."""
        del request
        clusters = Cluster.objects.timed().in_bulk({row.cluster_id for row in rows})
        for row in rows:
            # A cluster may have been deleted since its workloads were read.
            row.cluster = clusters.get(row.cluster_id) or _deleted(row.cluster_id)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Workload], search_term: str
    ) -> tuple[QuerySet[Workload], bool]:
        """Return the workloads with each word, or both parts of ``namespace/name``, in the names.

        The search of every page links here, and also accepts a cluster before the namespace.
        """
        words = search_term.split()
        if len(words) > MOST_WORDS:
            messages.warning(request, f"Only the first {MOST_WORDS} words are used.")
        for word in words[:MOST_WORDS]:
            for part in word.split("/")[-2:]:
                queryset = queryset.filter(Q(name__icontains=part) | Q(namespace__icontains=part))
        return queryset, False

    @admin.display(description="cluster")
    def cluster_name(self, workload: Workload) -> str:
        """Return a link to the cluster, with the age of the figures if it is unreachable."""
        url = reverse("admin:workloads_cluster_change", args=(workload.cluster_id,))
        return format_html(
            '<a href="{}">{}</a> {}', url, workload.cluster.name, as_of(workload.cluster)
        )

    @admin.display(description="health")
    def health(self, workload: Workload) -> str:
        """Show the reported or derived health."""
        return mark(workload.health_status)

    @admin.display(description="reason")
    def reason(self, workload: Workload) -> str:
        """Show the reason for the health."""
        return breakable(workload.status_reason) or str(self.get_empty_value_display())

    @admin.display(description="ready")
    def replicas(self, workload: Workload) -> str:
        """Show the numbers of ready and desired replicas."""
        return f"{workload.replicas_ready} of {workload.replicas_desired}"

    @admin.display(description="CPU used")
    def cpu(self, workload: Workload) -> str:
        """Show CPU usage compared with requests."""
        return cpu_bar(
            f"cpu-{workload.pk}", workload.cpu_requests_millicores, workload.cpu_used_millicores
        )

    @admin.display(description="memory used")
    def memory(self, workload: Workload) -> str:
        """Show memory usage compared with requests."""
        return memory_bar(
            f"memory-{workload.pk}", workload.memory_requests_bytes, workload.memory_used_bytes
        )

    @admin.display(description="CPU limits")
    def cpu_limits(self, workload: Workload) -> str:
        return cpu_text(workload.cpu_limits_millicores)

    @admin.display(description="memory limits")
    def memory_limits(self, workload: Workload) -> str:
        return memory_text(workload.memory_limits_bytes)


def _deleted(cluster_id: uuid.UUID) -> Cluster:
    """Return a placeholder for a deleted cluster."""
    cluster = Cluster(pk=cluster_id, name="deleted cluster")
    cluster.read_at = timezone.now()
    return cluster
