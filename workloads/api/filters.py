"""The filter fields of lists of clusters, workloads, transitions and images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q
from django_filters import BooleanFilter, CharFilter, FilterSet, UUIDFilter

from filterlang.filters import EnumFilter, IdentifierFilter, IntegerFilter, LabelsFilter
from filterlang.lookups import Piece
from filterlang.rewriting import rewritten
from infra_service.lib.api.identifiers import parse_uuid
from infra_service.lib.database.bounded_pages import NamedBy
from workloads.kubernetes.figures import FIGURES
from workloads.kubernetes.images import full_repository
from workloads.managed import managing
from workloads.models import HEALTH_STATUSES, KINDS, Cluster, Workload
from workloads.models.images import ClusterImage

if TYPE_CHECKING:
    import uuid

    from django.db.models import QuerySet

    from workloads.models import ClusterQuerySet, WorkloadImage


#: The prefix of the paths of image fields.
_IMAGE: Final = "image__"
CLUSTER: Final = "the complete name or the id of the cluster"


class WorkloadFilters(FilterSet):  # type: ignore[misc]  # django-filter has no types
    namespace = CharFilter()
    kind = EnumFilter(choices=KINDS)
    name = CharFilter()
    health_status = EnumFilter(choices=HEALTH_STATUSES, prefix="WORKLOAD_HEALTH_STATUS_")
    # Not a column: ``with_join`` replaces this field with a join.
    managed = BooleanFilter(help_text="whether a resource of a state manages the workload")
    labels = LabelsFilter(help_text="the value of a label of the workload")
    status_reason = CharFilter()
    replicas_desired = IntegerFilter()
    replicas_ready = IntegerFilter()
    replicas_available = IntegerFilter()
    vars().update({figure.name: IntegerFilter() for figure in FIGURES})
    # Images that the containers of the workload run. ``with_images`` resolves these fields,
    # because images are rows of another table.
    vars()["image.repository"] = CharFilter(
        field_name=f"{_IMAGE}repository",
        help_text="the repository of an image that a container runs",
    )
    vars()["image.digest"] = IdentifierFilter(
        field_name=f"{_IMAGE}digest", help_text="the digest of an image that a container runs"
    )

    class Meta:
        model = Workload
        fields = ()


#: Fields without an index on workloads. A list filtered by these fields is searched in parts.
#: Images have their own index.
SEARCHED: Final = (
    "labels", "managed", "status_reason",
    "replicas_desired", "replicas_ready", "replicas_available",
    *(figure.name for figure in FIGURES), "image.repository", "image.digest",
)  # fmt: skip


class FleetFilters(WorkloadFilters):
    cluster_id = UUIDFilter()
    # ``with_cluster_ids`` resolves names and ids before the query.
    cluster = IdentifierFilter(field_name="cluster__id", help_text=CLUSTER)
    cluster_name = CharFilter(field_name="cluster__name")


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
    """Convert comparisons with ``managed`` into a condition on the resources of states."""

    def replace(path: str, value: Any) -> Any:
        if path != "managed__exact":
            return path, value
        return managing().is_managed() if value else ~managing().is_managed()

    return rewritten(condition, replace)


def with_cluster_ids(condition: Q, clusters: ClusterQuerySet) -> Q:
    """Replace the names and parts of names of clusters with ids from ``clusters``.

    A comparison of ``cluster__id`` also accepts complete names. Each comparison requires one query.
    An id remains valid after the deletion of its cluster, because the changes of its workloads
    remain. ``condition`` expresses ``IS NULL`` as a negated ``IS NOT NULL``.
    """

    def replace(path: str, value: Any) -> tuple[str, Any]:
        kind, _, lookup = path.partition("__")
        if kind != "cluster":
            return path, value
        if path.endswith("__isnull"):
            # A row without a cluster, or with a deleted cluster, has no name.
            return "cluster_id__in", clusters.values_list("pk", flat=True)
        ids: list[uuid.UUID] = []
        if isinstance(value, Piece):
            named = Q((lookup, value))
        else:
            texts = value if isinstance(value, list) else [value]
            named = Q(name__in=texts)
            if lookup.startswith("id__"):
                ids = list(filter(None, map(parse_uuid, texts)))
        found = list({*clusters.filter(named).values_list("pk", flat=True), *ids})
        return ("cluster_id", found[0]) if len(found) == 1 else ("cluster_id__in", found)

    return rewritten(condition, replace)


def with_images(condition: Q, rows: QuerySet[WorkloadImage]) -> Q:
    """Convert comparisons with image fields into the workload ids of the matching ``rows``."""

    def replace(path: str, value: Any) -> Any:
        if not path.startswith(_IMAGE):
            return path, value
        compared = path.removeprefix(_IMAGE), value
        return NamedBy(rows.filter(with_full_repository(*compared)), "workload_id")

    return rewritten(condition, replace)


def with_full_repository(path: str, value: Any) -> tuple[str, Any]:
    """Complete a repository in a comparison: ``nginx`` is short for ``docker.io/library/nginx``."""
    if path == "repository__exact":
        return path, full_repository(value)
    return path, list(map(full_repository, value)) if path == "repository__in" else value
