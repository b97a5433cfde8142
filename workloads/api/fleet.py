"""The workloads of all visible clusters: the list and the summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.response import Response

from apikeys.authentication import caller_of
from apikeys.permissions import ACCESS_TOKENS
from apikeys.scopes import Scope
from filterlang.backend import PARAMETER
from infra_service.lib.api.pagination import SegmentPagination
from infra_service.lib.api.parameters import refuse_unknown
from infra_service.lib.api.viewsets import ResourceViewSet
from infra_service.lib.database.bounded_pages.selecting import ColumnOf
from workloads.api.filters import (
    SEARCHED,
    FleetFilters,
    with_cluster_ids,
    with_images,
    with_join,
)
from workloads.api.serializers import WorkloadSerializer
from workloads.api.workloads_openapi import fleet_schema, fleet_summary_schema
from workloads.models import Cluster, Workload, WorkloadImage
from workloads.summaries import summarize
from workloads.worst_first import PLACE, by_health

if TYPE_CHECKING:
    from django.db.models import Q
    from rest_framework.request import Request

    from workloads.models import WorkloadQuerySet


@fleet_schema
class FleetViewSet(ResourceViewSet[Workload]):
    """The viewset of the workloads of all clusters, the least healthy first."""

    queryset = Workload.objects.as_fresh_as(
        ColumnOf(Cluster, "cluster_id", "last_snapshot_at")
    ).annotate(cluster_name=ColumnOf(Cluster, "cluster_id", "name"))
    serializer_class = WorkloadSerializer
    filterset_class = FleetFilters
    pagination_class = SegmentPagination
    resource, resource_plural = "workload", "workloads"
    page_key = PLACE
    segments = by_health(PLACE)
    # Reason: docs/adr/0045-fleet-list-read-by-health.md
    searched_fields = ("kind", *SEARCHED)
    token_kinds = ACCESS_TOKENS
    required_scopes = {"list": Scope.CLUSTER_READ, "summary": Scope.CLUSTER_READ}

    def get_queryset(self) -> WorkloadQuerySet:
        workloads: WorkloadQuerySet = super().get_queryset()  # type: ignore[assignment]
        return workloads.inside(caller_of(self.request).binding)

    def prepared(self, condition: Q) -> Q:
        visible = Cluster.objects.inside(caller_of(self.request).binding)
        named = with_join(with_cluster_ids(condition, visible))
        return with_images(named, WorkloadImage.objects.all())

    @fleet_summary_schema
    def summary(self, request: Request) -> Response:
        """Count and sum the filtered workloads by cluster, kind and health."""
        refuse_unknown(request.query_params, {PARAMETER})
        workloads = self.filter_queryset(self.get_queryset())
        return Response({"summary": summarize(workloads, by="cluster_id")})
