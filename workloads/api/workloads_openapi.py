"""The OpenAPI description of reports, generated from the structs that parse them."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema_view
from drf_spectacular.utils import extend_schema as operation
from rest_framework.exceptions import UnsupportedMediaType

from infra_service.lib.api.bodies import BodyIncomplete, BodyTooLarge, RequestTimeout
from infra_service.lib.api.memory import MemoryInsufficient, MemoryUnavailable
from infra_service.lib.api.openapi_words import (
    EMPTY,
    Named,
    answer_example,
    error_docs,
    list_of,
    list_schema,
    object_of,
    request_example,
    wrapped,
)
from workloads.api import samples
from workloads.api.cluster_serializers import FailureSerializer
from workloads.api.clusters_openapi import CLUSTER_ID
from workloads.api.serializers import (
    ManagedWorkloadSerializer,
    WorkloadSerializer,
)
from workloads.errors import ClusterNotFound
from workloads.reporting.errors import (
    ClockAhead,
    ClusterBusy,
    ClusterUidMismatch,
    ContentEncodingUnsupported,
    InvalidGzip,
    InvalidJson,
    InvalidReport,
    StaleReport,
    TooManyReports,
)
from workloads.reporting.wire import Delta, Item, PlaceForm, Snapshot
from workloads.summaries import COUNTS, GROUPED, MANAGED, MEASURED, SUMMED

_WORKLOAD_ID: Final = OpenApiParameter(
    "id", OpenApiTypes.UUID, OpenApiParameter.PATH, description="The id of the workload."
)
_INTEGER: Final = {"type": "integer", "minimum": 0}
_MEASURED: Final = {"type": ["integer", "null"], "minimum": 0}
# Enumerations that responses share, under these names.
_ENUMS: Final = {"WorkloadKind": "WorkloadKind", "HealthStatus": "WorkloadHealthStatus"}


def _described(form: Any, **items: Any) -> Named:
    """Return a struct's JSON schema; ``items`` are the schemas of its raw lists."""
    _, parts = msgspec.json.schema_components([form], ref_template="{name}")
    described: Named = _resolved({"$ref": form.__name__}, parts)
    for name, item in items.items():
        described["properties"][name]["items"] = _described(item)
    return described


def _resolved(schema: Any, parts: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_resolved(entry, parts) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"]
        if name in _ENUMS:
            return {"$ref": f"#/components/schemas/{_ENUMS[name]}"}
        return Named(f"Reported{name}", _resolved(parts[name], parts))
    if "enum" in schema:
        enum = {"type": "string", "enum": schema["enum"]}
        return Named("ReportedContainerState", enum) if "" in schema["enum"] else enum
    # The patterns are Python's; JSON Schema has no \\Z.
    return {
        key: value.replace("\\Z", "$") if key == "pattern" else _resolved(value, parts)
        for key, value in schema.items()
        if key != "title"
    }


_APPLIED: Final = Named(
    "ReportAnswer",
    object_of(
        report=Named(
            "AppliedReport",
            object_of(
                cluster_id={"type": "string", "format": "uuid"},
                reported_at={"type": "string", "format": "date-time"},
                **dict.fromkeys(("created", "updated", "deleted", "unchanged"), _INTEGER),
            ),
        )
    ),
)
_SUMS: Final = {
    **dict.fromkeys(COUNTS, _INTEGER),
    **{name: _MEASURED if name in MEASURED else _INTEGER for name in SUMMED},
}


def _summary(of: str, sums: dict[str, Any], **told_apart: Any) -> Named:
    by_health = {"type": "object", "additionalProperties": _INTEGER}
    total = Named(f"{of}SummaryTotal", object_of(by_health_status=by_health, **sums))
    group = {**told_apart, **{name: {"type": "string"} for name in GROUPED}, **sums}
    groups = list_of(Named(f"{of}SummaryGroup", object_of(**group)))
    summary = Named(f"{of}Summary", object_of(total=total, groups=groups))
    return Named(f"{of}SummaryAnswer", object_of(summary=summary))


_SUMMARY: Final = _summary(
    "", {**_SUMS, **dict.fromkeys(MANAGED, _INTEGER)}, namespace={"type": "string"}
)
_FLEET_SUMMARY: Final = _summary(
    "Fleet",
    {**_SUMS, **dict.fromkeys(MANAGED, _MEASURED)},
    cluster_id={"type": "string", "format": "uuid"},
)


def _report(operation_id: str, form: Named, example: Any) -> dict[str, Any]:
    errors = (
        BodyIncomplete, RequestTimeout, InvalidJson, InvalidGzip, InvalidReport, ClusterNotFound,
        ClockAhead, StaleReport, ClusterUidMismatch, BodyTooLarge, ClusterBusy, TooManyReports,
        MemoryUnavailable, MemoryInsufficient,
        UnsupportedMediaType, ContentEncodingUnsupported,
    )  # fmt: skip
    return {
        "operation_id": operation_id,
        "parameters": [CLUSTER_ID],
        "request": {"application/json": form},
        "responses": {200: OpenApiResponse(_APPLIED, "Applied."), **error_docs(*errors)},
        "examples": [request_example(example), answer_example(samples.APPLIED)],
    }


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
        "The workloads of all clusters within the token's binding: first those in ERROR, "
        "then DEGRADED, unknown and HEALTHY; each ordered by cluster, namespace, name "
        "and kind. A workload whose health changes between two pages may be repeated or "
        "missing; every other workload is on exactly one page.",
        samples.WORKLOAD,
        operation_id="list_workloads_of_all_clusters",
    ),
)
images_schema = extend_schema_view(
    list=list_schema(
        "image",
        "The images that run in the clusters that the token sees, in the order of repository, tag "
        "and digest, and how many workloads and clusters run each.",
        samples.IMAGE,
    ),
)
fleet_summary_schema = operation(
    operation_id="summarize_workloads_of_all_clusters",
    responses={200: OpenApiResponse(_FLEET_SUMMARY, "The sums.")},
    examples=[answer_example(samples.FLEET_SUMMARY)],
    filters=True,
)
snapshot_schema = operation(
    **_report("replace_workloads", _described(Snapshot, workloads=Item), samples.SNAPSHOT)
)
delta_schema = operation(
    **_report("amend_workloads", _described(Delta, upserts=Item, deletes=PlaceForm), samples.DELTA)
)
failure_schema = operation(
    operation_id="report_collection_failure",
    parameters=[CLUSTER_ID],
    request=FailureSerializer,
    responses={204: EMPTY, **error_docs(ClusterNotFound, ClusterBusy, TooManyReports)},
    examples=[request_example(samples.FAILURE)],
)
