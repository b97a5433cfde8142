"""What lists may be filtered by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q
from django_filters import BooleanFilter, CharFilter, FilterSet, UUIDFilter

from filterlang.filters import EnumFilter, IdentifierFilter, IntegerFilter, LabelsFilter
from filterlang.rewriting import rewritten
from infra_service.lib.api.identifiers import parse_uuid
from infra_service.lib.database.pages import NamedBy
from workloads.kubernetes.figures import FIGURES
from workloads.kubernetes.images import full_repository
from workloads.managed import managing
from workloads.models import HEALTH_STATUSES, KINDS, Cluster, Workload
from workloads.models.images import ClusterImage

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from workloads.models import ClusterQuerySet, WorkloadImage


#: How the paths of what is said of images begin.
_IMAGE: Final = "image__"


class WorkloadFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    namespace = CharFilter()
    kind = EnumFilter(choices=KINDS)
    name = CharFilter()
    health_status = EnumFilter(choices=HEALTH_STATUSES, prefix="WORKLOAD_HEALTH_STATUS_")
    # No column, but a join (``with_join``).
    managed = BooleanFilter()
    labels = LabelsFilter()
    status_reason = CharFilter()
    replicas_desired = IntegerFilter()
    replicas_ready = IntegerFilter()
    replicas_available = IntegerFilter()
    vars().update({figure.name: IntegerFilter() for figure in FIGURES})
    # Of an image that one of its containers runs; other rows have them (``with_images``).
    vars()["image.repository"] = CharFilter(field_name=f"{_IMAGE}repository")
    vars()["image.digest"] = IdentifierFilter(field_name=f"{_IMAGE}digest")

    class Meta:
        model = Workload
        fields = ()


#: Those without an index of workloads: looked for a piece of the list at a time, but for images,
#: which an index of other rows finds.
SEARCHED: Final = (
    "labels", "managed", "status_reason",
    "replicas_desired", "replicas_ready", "replicas_available",
    *(figure.name for figure in FIGURES), "image.repository", "image.digest",
)  # fmt: skip


class FleetFilters(WorkloadFilters):
    cluster_id = UUIDFilter()
    # A name or an id, which is looked up before (``with_cluster_ids``).
    cluster = IdentifierFilter(field_name="cluster__name")


class ImageFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    repository = CharFilter()
    tag = CharFilter()
    digest = IdentifierFilter()

    class Meta:
        model = ClusterImage
        fields = ()


class ClusterFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    name = CharFilter()

    class Meta:
        model = Cluster
        fields = ()


def with_join(condition: Q) -> Q:
    """Return a condition that asks the states where it says whether a workload is managed."""

    def replace(path: str, value: Any) -> Any:
        if path != "managed__exact":
            return path, value
        return managing().is_managed() if value else ~managing().is_managed()

    return rewritten(condition, replace)


def with_cluster_ids(condition: Q, clusters: ClusterQuerySet) -> Q:
    """Return a condition with ids in place of the names or ids that ``cluster`` is compared with.

    Only those of ``clusters`` are found. One query for each such comparison.
    """

    def replace(path: str, value: Any) -> tuple[str, Any]:
        if not path.startswith("cluster__name__"):
            return path, value
        texts = value if isinstance(value, list) else [value]
        named = Q(name__in=texts) | Q(pk__in=list(filter(None, map(parse_uuid, texts))))
        found = list(clusters.filter(named).values_list("pk", flat=True))
        return ("cluster_id", found[0]) if len(found) == 1 else ("cluster_id__in", found)

    return rewritten(condition, replace)


def with_images(condition: Q, rows: QuerySet[WorkloadImage]) -> Q:
    """Return a condition in which ``rows`` name the workloads that run an image."""

    def replace(path: str, value: Any) -> Any:
        if not path.startswith(_IMAGE):
            return path, value
        compared = path.removeprefix(_IMAGE), value
        return NamedBy(rows.filter(with_full_repository(*compared)), "workload_id")

    return rewritten(condition, replace)


def with_full_repository(path: str, value: Any) -> tuple[str, Any]:
    """Return a comparison, of a repository with what it means: ``nginx`` has a registry too."""
    if path == "repository__exact":
        return path, full_repository(value)
    return path, list(map(full_repository, value)) if path == "repository__in" else value
