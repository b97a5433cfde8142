"""The viewset of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.response import Response

from apikeys.actors import Actor
from apikeys.authentication import caller_of
from apikeys.bindings import EVERYWHERE
from apikeys.errors import BindingInsufficient
from apikeys.permissions import ACCESS_TOKENS
from apikeys.scopes import Scope
from infra_service.lib.api.idempotency import idempotent
from infra_service.lib.api.viewsets import ResourceViewSet
from workloads import actions
from workloads.api.cluster_serializers import ClusterSerializer
from workloads.api.clusters_openapi import clusters_schema
from workloads.api.filters import ClusterFilters
from workloads.errors import ClusterNotFound
from workloads.models import Cluster

if TYPE_CHECKING:
    from rest_framework.request import Request

    from workloads.models import ClusterQuerySet


@clusters_schema
class ClusterViewSet(ResourceViewSet[Cluster]):
    """The viewset of clusters within the token's binding."""

    queryset = Cluster.objects.all()
    serializer_class = ClusterSerializer
    filterset_class = ClusterFilters
    resource, resource_plural = "cluster", "clusters"
    other_keys = (("name",),)
    moving_orders = ("name",)
    not_found = ClusterNotFound
    names_missing = True
    token_kinds = ACCESS_TOKENS
    required_scopes = {
        "list": Scope.CLUSTER_READ,
        "retrieve": Scope.CLUSTER_READ,
        "create": Scope.CLUSTER_WRITE,
        "partial_update": Scope.CLUSTER_WRITE,
        "destroy": Scope.CLUSTER_WRITE,
    }

    def get_queryset(self) -> ClusterQuerySet:
        return Cluster.objects.inside(caller_of(self.request).binding).timed()

    @idempotent
    def create(self, request: Request) -> Response:
        """Register a cluster."""
        if caller_of(request).binding != EVERYWHERE:
            raise BindingInsufficient
        cluster = actions.create_cluster(fields=self.read_new(), actor=Actor.of(request))
        # Not read again, because another request may already have deleted it.
        cluster.read_at = cluster.created_at
        return self.answer(cluster, status=201)

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
