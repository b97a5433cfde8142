"""The OpenAPI description of a workload's history."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema_view
from drf_spectacular.utils import extend_schema as operation
from rest_framework.exceptions import ValidationError

from infra_service.lib.api.openapi_words import (
    answer_example,
    error_docs,
    list_schema,
    period_parameters,
    wrapped,
)
from workloads.api import samples
from workloads.api.clusters_openapi import CLUSTER_ID
from workloads.api.history_serializers import AvailabilitySerializer, TransitionSerializer
from workloads.errors import ClusterNotFound
from workloads.history import KEPT, MOST_TRANSITIONS
from workloads.reporting.errors import WorkloadNotFound

_WORKLOAD_ID: Final = OpenApiParameter(
    "workload_id",
    OpenApiTypes.UUID,
    OpenApiParameter.PATH,
    description="The id of an existing or deleted workload.",
)


transitions_schema: Any = extend_schema_view(
    list=list_schema(
        "transition",
        "Changes in a workload's health or its reason, newest first. The service keeps changes "
        f"for {KEPT.days} days, and at most {MOST_TRANSITIONS:,} for each workload.",
        samples.TRANSITION,
        operation_id="list_workload_transitions",
        parameters=[CLUSTER_ID, _WORKLOAD_ID],
        responses={
            200: TransitionSerializer(many=True),
            **error_docs(ClusterNotFound, WorkloadNotFound),
        },
    ),
)
availability_schema = operation(
    operation_id="get_workload_availability",
    description="The share of a period in which a workload was healthy. Unobserved time does "
    "not count.",
    parameters=[
        CLUSTER_ID,
        _WORKLOAD_ID,
        *period_parameters(KEPT),
    ],
    responses={
        200: wrapped("AvailabilityAnswer", "availability", AvailabilitySerializer),
        **error_docs(ValidationError, ClusterNotFound, WorkloadNotFound),
    },
    examples=[answer_example({"availability": samples.AVAILABILITY})],
    filters=False,
)
