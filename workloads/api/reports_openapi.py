"""The OpenAPI description of reports, generated from the structs that parse them."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from drf_spectacular.utils import OpenApiResponse
from drf_spectacular.utils import extend_schema as operation
from rest_framework.exceptions import UnsupportedMediaType

from infra_service.lib.api.bodies import BodyIncomplete, BodyTooLarge, RequestTimeout
from infra_service.lib.api.memory import MemoryInsufficient, MemoryUnavailable
from infra_service.lib.api.openapi_words import (
    EMPTY,
    Named,
    answer_example,
    error_docs,
    request_example,
)
from infra_service.lib.api.struct_schemas import schema_of
from workloads.api import samples
from workloads.api.answers import ReportAnswer
from workloads.api.cluster_serializers import FailureSerializer
from workloads.api.clusters_openapi import CLUSTER_ID
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

# Enumerations that reports share with responses, with their names in the document.
_ENUMS: Final = {"WorkloadKind": "WorkloadKind", "HealthStatus": "WorkloadHealthStatus"}
_WORST_STATE: Final = Named(
    "ReportedContainerState",
    {
        "type": "string",
        "description": "The worst state of a container over all pods; empty if there is no pod.",
        "enum": ["", "running", "terminated", "waiting"],
    },
)


def _described(form: Any, **items: Any) -> Named:
    """Return the JSON schema of a struct. ``items`` contains the item types of its raw lists."""
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
        return _beside(_component(schema["$ref"], parts), schema)
    if "" in schema.get("enum", ()):
        return _beside(_WORST_STATE, schema)
    # The patterns are Python's. JSON Schema does not support \\Z.
    written = {
        key: value.replace("\\Z", "$") if key == "pattern" else _resolved(value, parts)
        for key, value in schema.items()
        if key != "title"
    }
    return {"type": "string", **written} if "enum" in schema else written


def _component(name: str, parts: dict[str, Any]) -> dict[str, Any]:
    if name in _ENUMS:
        return {"$ref": f"#/components/schemas/{_ENUMS[name]}"}
    return Named(f"Reported{name}", _resolved(parts[name], parts))


def _beside(component: dict[str, Any], field: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a component, with the description of a field that has this type."""
    if "description" not in field:
        return component
    return {"allOf": [component], "description": field["description"]}


_ANSWER: Final = schema_of(ReportAnswer)


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
        "responses": {200: OpenApiResponse(_ANSWER, "Applied."), **error_docs(*errors)},
        "examples": [request_example(example), answer_example(samples.APPLIED)],
    }


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
