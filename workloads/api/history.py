"""The history of a workload: its transitions, and the share of time in which it was healthy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.response import Response

from apikeys.permissions import ACCESS_TOKENS
from apikeys.scopes import Scope
from infra_service.lib.api.identifiers import parse_uuid
from infra_service.lib.api.parameters import refuse_unknown
from infra_service.lib.api.periods import PERIOD_PARAMETERS, read_period
from infra_service.lib.api.viewsets import ResourceViewSet
from workloads.api.history_openapi import availability_schema, transitions_schema
from workloads.api.history_serializers import AvailabilitySerializer, TransitionSerializer
from workloads.api.visible import find_cluster
from workloads.availability import availability, known_spans
from workloads.history import KEPT
from workloads.models import Cluster, Transition, Workload
from workloads.reporting.errors import WorkloadNotFound

if TYPE_CHECKING:
    import uuid

    from rest_framework.request import Request

    from workloads.models.history import TransitionQuerySet


@transitions_schema
class HistoryViewSet(ResourceViewSet[Transition]):
    """The viewset of the history of a workload, even if the workload is deleted."""

    queryset = Transition.objects.all()
    serializer_class = TransitionSerializer
    filter_backends = ()
    resource, resource_plural = "transition", "transitions"
    page_key = ("-number",)
    not_found = WorkloadNotFound
    token_kinds = ACCESS_TOKENS
    required_scopes = {"list": Scope.CLUSTER_READ, "availability": Scope.CLUSTER_READ}

    def get_queryset(self) -> TransitionQuerySet:
        """Return the transitions of the workload.

        Raises:
            ClusterNotFound, WorkloadNotFound: the object is missing, or outside the token's
                binding.
        """
        cluster, workload_id = self._cluster(), self._workload_id()
        # A workload id belongs to a single cluster.
        found = Transition.objects.filter(workload_id=workload_id)
        is_there = Workload.objects.filter(pk=workload_id, cluster=cluster).exists()
        if not is_there and not found.filter(cluster_id=cluster.pk).exists():
            raise WorkloadNotFound
        return found.with_type()

    @availability_schema
    def availability(self, request: Request, **_path: str) -> Response:
        """Return the share of time in which the workload was healthy."""
        refuse_unknown(request.query_params, PERIOD_PARAMETERS)
        cluster, workload_id = self._cluster(), self._workload_id()
        since, until = read_period(request, now=cluster.read_at, longest=KEPT)
        found = availability(known_spans(cluster, workload_id, since, until), since, until)
        return Response({"availability": AvailabilitySerializer(found).data})

    def _cluster(self) -> Cluster:
        return find_cluster(self.request, Cluster.objects.timed(), self.kwargs["cluster_id"])

    def _workload_id(self) -> uuid.UUID:
        found = parse_uuid(self.kwargs["workload_id"])
        if found is None:
            raise WorkloadNotFound
        return found
