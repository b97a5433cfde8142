"""Clusters, and what runs in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import DateTimeField, Value
from django.db.models.functions import Coalesce, Greatest
from rest_framework.response import Response

from apikeys.audit import Actor
from apikeys.authentication import caller_of
from apikeys.errors import BindingInsufficient
from apikeys.grants import EVERYWHERE
from apikeys.permissions import ACCESS_TOKENS
from apikeys.scopes import Scope
from infra_service.api.identifiers import parse_uuid
from infra_service.api.viewsets import ResourceViewSet
from workloads import actions
from workloads.api.filters import ClusterFilters, WorkloadFilters
from workloads.api.openapi import clusters_schema, workloads_schema
from workloads.api.serializers import ClusterSerializer, WorkloadSerializer
from workloads.errors import ClusterNotFound
from workloads.models import Cluster, Workload

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request

    from workloads.models import ClusterQuerySet


@clusters_schema
class ClusterViewSet(ResourceViewSet[Cluster]):
    """Clusters. What the token is not bound to is not there."""

    queryset = Cluster.objects.all()
    serializer_class = ClusterSerializer
    filterset_class = ClusterFilters
    resource, resource_plural = "cluster", "clusters"
    not_found = ClusterNotFound
    token_kinds = ACCESS_TOKENS
    required_scopes = {
        "list": Scope.CLUSTER_READ,
        "retrieve": Scope.CLUSTER_READ,
        "create": Scope.CLUSTER_WRITE,
        "partial_update": Scope.CLUSTER_WRITE,
        "destroy": Scope.CLUSTER_WRITE,
    }

    def get_queryset(self) -> ClusterQuerySet:
        """Return what the caller sees."""
        return Cluster.objects.inside(caller_of(self.request).binding).timed()

    def create(self, request: Request) -> Response:
        """Register a cluster."""
        if caller_of(request).binding != EVERYWHERE:
            raise BindingInsufficient
        cluster = actions.create_cluster(fields=self.read_new(), actor=Actor.of(request))
        return self.answer(self.get_queryset().get(pk=cluster.pk), status=201)

    def partial_update(self, request: Request, **_path: str) -> Response:
        """Change a cluster."""
        cluster = self.get_object()
        actions.change_cluster(
            cluster_id=cluster.pk, changes=self.read_changes(), actor=Actor.of(request)
        )
        return self.answer(self.get_object())

    def destroy(self, request: Request, **_path: str) -> Response:
        """Delete a cluster and its workloads."""
        actions.delete_cluster(cluster_id=self.get_object().pk, actor=Actor.of(request))
        return Response(status=204)


@workloads_schema
class WorkloadViewSet(ResourceViewSet[Workload]):
    """The workloads of one cluster, in the order of namespace, name and kind."""

    queryset = Workload.objects.all()
    serializer_class = WorkloadSerializer
    filterset_class = WorkloadFilters
    resource, resource_plural = "workload", "workloads"
    page_key = ("namespace", "name", "kind")
    scoped_by = ("cluster_id",)
    # Looked for in the cluster: docs/adr/0009-workloads-are-searched-within-a-cluster.md.
    searched_fields = (
        "labels", "status_reason", "replicas_desired", "replicas_ready", "replicas_available",
        "cpu_requests_millicores", "cpu_limits_millicores", "cpu_used_millicores",
        "memory_requests_bytes", "memory_limits_bytes", "memory_used_bytes",
    )  # fmt: skip
    token_kinds = ACCESS_TOKENS
    required_scopes = {"list": Scope.CLUSTER_READ}

    def get_queryset(self) -> QuerySet[Workload]:
        """Return the cluster's workloads, as fresh as what was last heard of each.

        Raises:
            ClusterNotFound: there is none, or the token does not reach it.
        """
        clusters = Cluster.objects.inside(caller_of(self.request).binding)
        found = parse_uuid(self.kwargs["cluster_id"])
        if found is None:
            raise ClusterNotFound
        try:
            cluster_id, snapshot = clusters.values_list("id", "last_snapshot_at").get(pk=found)
        except Cluster.DoesNotExist as error:
            raise ClusterNotFound from error
        # What a snapshot leaves as it was is not written, and yet as fresh as the snapshot.
        heard = Coalesce(Value(snapshot, DateTimeField()), "observed_at")
        return Workload.objects.filter(cluster_id=cluster_id).annotate(
            last_updated_at=Greatest("observed_at", heard)
        )
