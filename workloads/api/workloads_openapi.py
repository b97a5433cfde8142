"""The OpenAPI description of workloads, their summaries, and images."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema_view
from drf_spectacular.utils import extend_schema as operation

from infra_service.lib.api.openapi_words import (
    Named,
    answer_example,
    described_object,
    error_docs,
    list_of,
    list_schema,
    wrapped,
)
from workloads.api import samples
from workloads.api.clusters_openapi import CLUSTER_ID
from workloads.api.serializers import (
    ManagedWorkloadSerializer,
    WorkloadSerializer,
)
from workloads.errors import ClusterNotFound
from workloads.summaries import GROUPED, MEASURED, MOST_JOINED, SUMMED

_WORKLOAD_ID: Final = OpenApiParameter(
    "id", OpenApiTypes.UUID, OpenApiParameter.PATH, description="The id of the workload."
)


def _count(description: str, *, nullable: bool = False) -> dict[str, Any]:
    kind = ["integer", "null"] if nullable else "integer"
    return {"type": kind, "minimum": 0, "description": description}


_OF_GROUP: Final = {
    "type": "string",
    "description": "The value that all workloads of the group share.",
}
_ENUMS: Final = dict(zip(GROUPED, ("WorkloadKind", "WorkloadHealthStatus"), strict=True))
_SUMS: Final = {
    "workloads": _count("Number of workloads."),
    "workloads_measured": _count("Number of workloads with a known usage."),
    **{
        name: _count(
            "The sum over the measured workloads; null if no workload is measured.", nullable=True
        )
        if name in MEASURED
        else _count("The sum over all workloads.")
        for name in SUMMED
    },
}


def _summary(of: str, *, first: dict[str, Any], nullable: bool) -> Named:
    """Return the schema of a summary; ``first`` is the first column of its groups."""
    beyond = f"; null for more than {MOST_JOINED:,} workloads" if nullable else ""
    sums = {
        **_SUMS,
        "workloads_managed": _count(
            f"Number of workloads that a resource in a state manages{beyond}.", nullable=nullable
        ),
        "workloads_unmanaged": _count(
            f"Number of workloads that no resource in any state manages{beyond}.", nullable=nullable
        ),
    }
    total = described_object(
        f"{of}SummaryTotal",
        "The sums over all workloads that match the filter.",
        by_health_status={
            "type": "object",
            "description": "Number of workloads for each WorkloadHealthStatus.",
            "additionalProperties": {"type": "integer", "minimum": 0},
        },
        **sums,
    )
    group = described_object(
        f"{of}SummaryGroup",
        "The sums over the workloads of a group.",
        **first,
        **{
            name: {
                "allOf": [{"$ref": f"#/components/schemas/{enum}"}],
                "description": _OF_GROUP["description"],
            }
            for name, enum in _ENUMS.items()
        },
        **sums,
    )
    order = ", ".join((*first, *GROUPED))
    groups = {**list_of(group), "description": f"The groups, ordered by {order}."}
    summary = described_object(
        f"{of}Summary",
        "Sums of replicas and resources.",
        total={"allOf": [total], "description": "The sums over all groups."},
        groups=groups,
    )
    described = {"allOf": [summary], "description": "Computed at the time of the response."}
    return described_object(f"{of}SummaryAnswer", "A response with the summary.", summary=described)


_SUMMARY: Final = _summary("", first={"namespace": _OF_GROUP}, nullable=False)
_FLEET_SUMMARY: Final = _summary(
    "Fleet", first={"cluster_id": {**_OF_GROUP, "format": "uuid"}}, nullable=True
)
workloads_schema = extend_schema_view(
    list=list_schema(
        "workload",
        "The workloads of a cluster, ordered by namespace, name and kind.",
        samples.WORKLOAD,
        parameters=[CLUSTER_ID],
        responses={200: WorkloadSerializer(many=True), **error_docs(ClusterNotFound)},
    ),
    retrieve=operation(
        operation_id="get_workload",
        parameters=[CLUSTER_ID, _WORKLOAD_ID],
        responses={
            200: wrapped("WorkloadAnswer", "workload", ManagedWorkloadSerializer),
            **error_docs(ClusterNotFound),
        },
        examples=[answer_example({"workload": samples.MANAGED_WORKLOAD})],
    ),
)
summary_schema = operation(
    operation_id="summarize_workloads",
    parameters=[CLUSTER_ID],
    responses={200: OpenApiResponse(_SUMMARY, "The sums."), **error_docs(ClusterNotFound)},
    examples=[answer_example(samples.SUMMARY)],
    filters=True,
)
fleet_schema = extend_schema_view(
    list=list_schema(
        "workload",
        "The workloads of all clusters within the token's binding, ordered by health (ERROR, "
        "DEGRADED, unspecified, HEALTHY), then by cluster, namespace, name and kind. A workload "
        "whose health changes between two pages may be repeated or missing. Every other "
        "workload is on exactly one page.",
        samples.WORKLOAD,
        operation_id="list_workloads_of_all_clusters",
    ),
)
images_schema = extend_schema_view(
    list=list_schema(
        "image",
        "The images that run in the clusters that the token can access, with the number of "
        "workloads and clusters that run each image. Ordered by repository, tag and digest.",
        samples.IMAGE,
    ),
)
fleet_summary_schema = operation(
    operation_id="summarize_workloads_of_all_clusters",
    responses={200: OpenApiResponse(_FLEET_SUMMARY, "The sums.")},
    examples=[answer_example(samples.FLEET_SUMMARY)],
    filters=True,
)
