"""The workloads of a cluster: list, item, summary and reports."""

from __future__ import annotations

import dataclasses
import uuid
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import CharField, DateTimeField, Value
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.response import Response

from apikeys.actors import Actor
from apikeys.authentication import caller_of
from apikeys.permissions import ACCESS_TOKENS
from apikeys.scopes import Scope
from filterlang.backend import PARAMETER
from infra_service.lib.api.parameters import refuse_unknown
from infra_service.lib.api.viewsets import ResourceViewSet
from workloads import actions, metrics
from workloads.api.answers import AppliedReport, ReportAnswer
from workloads.api.cluster_serializers import FailureSerializer
from workloads.api.filters import SEARCHED, WorkloadFilters, with_images, with_join
from workloads.api.reports_openapi import delta_schema, failure_schema, snapshot_schema
from workloads.api.serializers import (
    ManagedWorkloadSerializer,
    WorkloadSerializer,
)
from workloads.api.visible import find_cluster
from workloads.api.workloads_openapi import summary_schema, workloads_schema
from workloads.collection import CollectionFailure, FailureReason
from workloads.errors import ClusterNotFound
from workloads.managed import managing
from workloads.models import Cluster, Workload, WorkloadImage
from workloads.reporting.applying import apply_report
from workloads.reporting.bodies import read_body
from workloads.reporting.errors import WorkloadNotFound, shown
from workloads.reporting.incoming import read_report
from workloads.reporting.slots import report_slots
from workloads.summaries import summarize

if TYPE_CHECKING:
    from django.db.models import Q, QuerySet
    from rest_framework.request import Request


@workloads_schema
class WorkloadViewSet(ResourceViewSet[Workload]):
    """The viewset of the workloads of a cluster, ordered by namespace, name and kind."""

    queryset = Workload.objects.all()
    serializer_class = WorkloadSerializer
    filterset_class = WorkloadFilters
    resource, resource_plural = "workload", "workloads"
    not_found = WorkloadNotFound
    page_key = ("namespace", "name", "kind")
    other_keys = (
        ("name", "namespace", "kind"),
        ("kind", "namespace", "name"),
        ("health_status", "namespace", "name", "kind"),
    )
    moving_orders = ("health_status",)
    scoped_by = ("cluster_id",)
    # Searched within the cluster: docs/adr/0009-no-index-on-workload-labels.md
    searched_fields = SEARCHED
    token_kinds = ACCESS_TOKENS
    reads_bodies_of = frozenset({"PUT", "PATCH"})
    required_scopes = {
        "list": Scope.CLUSTER_READ,
        "retrieve": Scope.CLUSTER_READ,
        "summary": Scope.CLUSTER_READ,
        "replace": Scope.CLUSTER_REPORT,
        "amend": Scope.CLUSTER_REPORT,
        "report_failure": Scope.CLUSTER_REPORT,
    }

    def get_queryset(self) -> QuerySet[Workload]:
        """Return the cluster's workloads, with the cluster's name and its last snapshot time.

        Raises:
            ClusterNotFound: the cluster is missing, or outside the token's binding.
        """
        cluster = self._cluster()
        workloads = Workload.objects.filter(cluster_id=cluster.pk)
        workloads = workloads.as_fresh_as(Value(cluster.last_snapshot_at, DateTimeField()))
        workloads = workloads.annotate(cluster_name=Value(cluster.name, CharField()))
        # Only for a single workload: the annotation would double the time of a list.
        is_detail = self.action == "retrieve"
        return workloads.annotate(managed=managing().is_managed()) if is_detail else workloads

    def prepared(self, condition: Q) -> Q:
        own = WorkloadImage.objects.filter(cluster_id=uuid.UUID(self.kwargs["cluster_id"]))
        return with_images(with_join(condition), own)

    def retrieve(self, _request: Request, **_path: str) -> Response:
        """Return a workload and the resources of states that manage it."""
        workload: Any = self.get_object()
        caller = caller_of(self.request)
        may_read_states = Scope.STATE_READ in caller.scopes
        workload.managed_by = (
            managing().managed_by(workload, caller.binding) if may_read_states else []
        )
        return Response({self.resource: ManagedWorkloadSerializer(workload).data})

    @summary_schema
    def summary(self, request: Request, **_path: str) -> Response:
        """Count and sum the filtered workloads by namespace, kind and health."""
        refuse_unknown(request.query_params, {PARAMETER})
        workloads = self.filter_queryset(self.get_queryset())
        return Response({"summary": summarize(workloads, by="namespace")})

    @snapshot_schema
    def replace(self, request: Request, **_path: str) -> Response:
        """Apply a snapshot of all workloads of the cluster, and delete all other workloads."""
        return self._report(request, complete=True)

    @delta_schema
    def amend(self, request: Request, **_path: str) -> Response:
        """Apply a delta, which contains changed and deleted workloads."""
        return self._report(request, complete=False)

    @failure_schema
    def report_failure(self, request: Request, **_path: str) -> Response:
        """Record why a collector cannot read its cluster."""
        cluster_id = self._cluster().pk  # 404 before a body is read
        options = self.read_options(FailureSerializer)
        failure = CollectionFailure(**{**options, "reason": FailureReason(options["reason"])})
        with report_slots.acquire(cluster_id):
            actions.record_collection_failure(
                cluster_id=cluster_id, failure=failure, actor=Actor.of(request)
            )
        return Response(status=HTTPStatus.NO_CONTENT)

    def _cluster(self) -> Cluster:
        clusters = Cluster.objects.only("name", "last_snapshot_at")
        return find_cluster(self.request, clusters, self.kwargs["cluster_id"])

    def _report(self, request: Request, *, complete: bool) -> Response:
        cluster = self._cluster()  # 404 before a body is read
        if request.content_type.partition(";")[0].strip().lower() != "application/json":
            raise UnsupportedMediaType(request.content_type)
        body = read_body(request._request, settings.WORKLOADS_MAX_BYTES)
        with report_slots.acquire(cluster.pk):
            report = read_report(body, complete=complete)
            try:
                applied = apply_report(
                    cluster_id=cluster.pk, report=report, actor=Actor.of(request)
                )
            except Cluster.DoesNotExist as error:  # deleted while the body arrived
                raise ClusterNotFound from error
        (metrics.SNAPSHOTS if complete else metrics.DELTAS).inc()
        return Response(
            ReportAnswer(
                report=AppliedReport(
                    cluster_id=cluster.pk,
                    cluster_name=cluster.name,
                    reported_at=shown(report.reported_at),
                    **dataclasses.asdict(applied),
                )
            )
        )
