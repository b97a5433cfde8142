"""How records, versions and contents of states are described in OpenAPI."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
)

from apikeys.schema import wrapped
from apikeys.serializers import NothingSerializer
from states.serializers import (
    ForceUnlockSerializer,
    RestoreSerializer,
    StateSerializer,
    VersionSerializer,
)

_STATE: Final = wrapped("StateAnswer", "state", StateSerializer)
_VERSION: Final = wrapped("VersionAnswer", "version", VersionSerializer)
_LOCKED: Final = OpenApiResponse(OpenApiTypes.OBJECT, "Locked; LockInfo stands beside `error`.")
_UNREADABLE: Final = OpenApiResponse(
    OpenApiTypes.OBJECT, "`STATE_ENCRYPTED`, `STATE_FORMAT_UNSUPPORTED` or a wrong parameter."
)
_STATE_ID: Final = OpenApiParameter("state_id", OpenApiTypes.UUID, OpenApiParameter.PATH)
_NUMBER: Final = OpenApiParameter("number", OpenApiTypes.INT, OpenApiParameter.PATH)
_PAGES: Final = [
    OpenApiParameter("page_size", OpenApiTypes.INT32, description="0 to 100; 0 is 50."),
    OpenApiParameter("page_token", OpenApiTypes.STR, description="Of the page before."),
]
_ANY: Final[dict[str, Any]] = {}
_TEXT: Final = {"type": "string"}
_TEXT_OR_NULL: Final = {"type": ["string", "null"]}
_NEXT: Final = {"type": "string", "description": "Of the next page; empty on the last one."}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


_OUTPUT: Final = _object(name=_TEXT, value=_ANY, type=_ANY, sensitive={"type": "boolean"})
_ADDRESS: Final = {
    "address": _TEXT,
    "deposed": _TEXT_OR_NULL,
    "module": _TEXT_OR_NULL,
    "mode": {"type": "string", "enum": ["managed", "data"]},
    "type": _TEXT,
    "name": _TEXT,
    "index_key": {"type": ["string", "integer", "null"]},
}
_RESOURCE: Final = _object(
    **_ADDRESS,
    provider=_TEXT,
    status=_TEXT_OR_NULL,
    schema_version={"type": "integer"},
    create_before_destroy={"type": "boolean"},
    dependencies=_list(_TEXT),
    sensitive_attributes=_list(_TEXT),
    attributes=_ANY,
)
_ACTION: Final = {"type": "string", "enum": ["ADDED", "CHANGED", "REMOVED"]}
_CHANGED: Final = {
    "action": _ACTION,
    "attributes": _list(
        _object(path=_TEXT, action=_ACTION, before=_ANY, after=_ANY, sensitive={"type": "boolean"})
    ),
    "metadata": _list(_object(field=_TEXT, before=_ANY, after=_ANY)),
}
_COUNTS: Final = _object(**{name: {"type": "integer"} for name in ("added", "changed", "removed")})
_SIDE: Final = {"type": ["object", "null"], "description": "The version and `terraform_version`."}
_DIFF: Final = _object(
    diff=_object(
        before=_SIDE,
        after=_SIDE,
        summary=_object(outputs=_COUNTS, resources=_COUNTS),
        outputs=_list(_object(name=_TEXT, **_CHANGED)),
        resources=_list(_object(**_ADDRESS, **_CHANGED)),
    ),
    next_page_token=_NEXT,
)


def _contents(name: str, item: dict[str, Any]) -> Any:
    answer = _object(
        **{name: _list(item)}, version_number={"type": "integer"}, next_page_token=_NEXT
    )
    return extend_schema(
        operation_id=f"list_state_{name}",
        parameters=[_STATE_ID, *_PAGES],
        responses={200: answer, 400: _UNREADABLE},
        filters=False,
    )


record_schema = extend_schema_view(
    retrieve=extend_schema(operation_id="get_state", responses=_STATE),
    destroy=extend_schema(
        operation_id="delete_state_record",
        responses={204: OpenApiResponse(None, "Deleted."), 423: _LOCKED},
    ),
    force_unlock=extend_schema(
        operation_id="force_unlock_state",
        request=ForceUnlockSerializer,
        responses={200: _STATE, 409: OpenApiResponse(None, "Another lock holds the state.")},
    ),
    undelete=extend_schema(
        operation_id="undelete_state",
        request=NothingSerializer,
        responses={200: _STATE, 423: _LOCKED},
    ),
)

versions_schema = extend_schema_view(
    list=extend_schema(operation_id="list_state_versions", parameters=[_STATE_ID]),
    retrieve=extend_schema(
        operation_id="get_state_version", parameters=[_STATE_ID, _NUMBER], responses=_VERSION
    ),
    document=extend_schema(
        operation_id="get_state_version_document",
        parameters=[_STATE_ID, _NUMBER],
        responses=OpenApiTypes.OBJECT,
    ),
    diff=extend_schema(
        operation_id="diff_state_versions",
        parameters=[
            _STATE_ID,
            _NUMBER,
            OpenApiParameter("against", OpenApiTypes.INT, description="Default: the one before."),
            *_PAGES,
        ],
        responses={200: _DIFF, 400: _UNREADABLE},
    ),
    restore=extend_schema(
        operation_id="restore_state_version",
        parameters=[_STATE_ID, _NUMBER],
        request=RestoreSerializer,
        responses={200: _VERSION, 400: _UNREADABLE, 423: _LOCKED},
    ),
)

contents_schema = extend_schema_view(
    outputs=_contents("outputs", _OUTPUT), resources=_contents("resources", _RESOURCE)
)
