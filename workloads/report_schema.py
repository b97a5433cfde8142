"""How reports are described in OpenAPI, from the same structs that read them."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
)

from apikeys.schema import wrapped
from workloads.serializers import WorkloadSerializer
from workloads.summaries import FIGURES, GROUP
from workloads.wire import Delta, Item, PlaceForm, Snapshot

_CLUSTER_ID: Final = OpenApiParameter(
    "cluster_id", OpenApiTypes.UUID, OpenApiParameter.PATH, description="The cluster."
)
_WORKLOAD_ID: Final = OpenApiParameter(
    "id", OpenApiTypes.UUID, OpenApiParameter.PATH, description="The workload."
)
_INTEGER: Final = {"type": "integer", "format": "int64"}


def _described(form: Any, **items: Any) -> dict[str, Any]:
    """Return a struct's JSON schema with no references; `items` are those of its raw lists."""
    (schema,), parts = msgspec.json.schema_components([form], ref_template="{name}")
    described: dict[str, Any] = _resolved(schema, parts)
    for name, item in items.items():
        described["properties"][name]["items"] = _described(item)
    return described


def _resolved(schema: Any, parts: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_resolved(entry, parts) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _resolved(parts[schema["$ref"]], parts)
    # The patterns are Python's, and \\Z means nothing elsewhere.
    return {
        key: value.replace("\\Z", "$") if key == "pattern" else _resolved(value, parts)
        for key, value in schema.items()
        if key != "title"
    }


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


_APPLIED: Final = _object(
    report=_object(
        cluster_id={"type": "string", "format": "uuid"},
        reported_at={"type": "string", "format": "date-time"},
        created=_INTEGER,
        updated=_INTEGER,
        deleted=_INTEGER,
        unchanged=_INTEGER,
    )
)
_SUMS: Final = dict.fromkeys(("workloads", "workloads_measured", *FIGURES), _INTEGER)
_SUMMARY: Final = _object(
    summary=_object(
        total=_object(
            **_SUMS, by_health_status={"type": "object", "additionalProperties": _INTEGER}
        ),
        groups={
            "type": "array",
            "items": _object(**{name: {"type": "string"} for name in GROUP}, **_SUMS),
        },
    )
)
_CONFLICT: Final = OpenApiResponse(
    OpenApiTypes.OBJECT, "STALE_REPORT: not newer than the last; CLUSTER_UID_MISMATCH: another's."
)
_TOO_LARGE: Final = OpenApiResponse(OpenApiTypes.OBJECT, "Larger than WORKLOADS_MAX_BYTES.")


def _report(operation_id: str, form: dict[str, Any]) -> Any:
    return extend_schema(
        operation_id=operation_id,
        parameters=[_CLUSTER_ID],
        request={"application/json": form},
        responses={200: _APPLIED, 409: _CONFLICT, 413: _TOO_LARGE},
    )


reported_workloads_schema = extend_schema_view(
    retrieve=extend_schema(
        operation_id="get_workload",
        parameters=[_CLUSTER_ID, _WORKLOAD_ID],
        responses=wrapped("WorkloadAnswer", "workload", WorkloadSerializer),
    ),
    summary=extend_schema(
        operation_id="summarize_workloads", parameters=[_CLUSTER_ID], responses=_SUMMARY
    ),
    replace=_report("replace_workloads", _described(Snapshot, workloads=Item)),
    amend=_report("amend_workloads", _described(Delta, upserts=Item, deletes=PlaceForm)),
)
