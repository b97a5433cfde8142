"""How the state backend is described in OpenAPI, which knows no LOCK and UNLOCK methods."""

from __future__ import annotations

from typing import Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
)

from apikeys.schema import resource_schema
from states.serializers import (
    ApplicationSerializer,
    ComponentSerializer,
    EnvironmentSerializer,
)

_LOCK_INFO: Final = {
    "type": "object",
    "properties": {
        "ID": {"type": "string", "format": "uuid"},
        "Operation": {"type": "string"},
        "Info": {"type": "string"},
        "Who": {"type": "string"},
        "Version": {"type": "string"},
        "Created": {"type": "string", "format": "date-time"},
        "Path": {"type": "string"},
    },
    "required": ["ID"],
}
_KEY: Final = [
    OpenApiParameter(name, OpenApiTypes.UUID, OpenApiParameter.PATH, description=description)
    for name, description in (
        ("component_id", "The infrastructure component."),
        ("environment_id", "The environment the state is scoped to."),
    )
]
_LOCKED: Final = OpenApiResponse(_LOCK_INFO, "Locked; the holder's LockInfo, beside `error`.")
_CONFLICT: Final = OpenApiResponse(OpenApiTypes.OBJECT, "The given lock does not hold the state.")
_EMPTY: Final = OpenApiResponse(None, "Done; the body is empty.")

state_schema = extend_schema_view(
    get=extend_schema(
        operation_id="read_state_document",
        parameters=_KEY,
        responses={200: OpenApiTypes.OBJECT, 404: OpenApiResponse(None, "No state.")},
    ),
    post=extend_schema(
        operation_id="push_state",
        parameters=[
            *_KEY,
            OpenApiParameter("ID", OpenApiTypes.UUID, description="The held lock's ID."),
            OpenApiParameter(
                "force", OpenApiTypes.BOOL, description="Replace newer; needs `state:admin`."
            ),
        ],
        request={"application/json": {"type": "object"}},
        responses={200: _EMPTY, 409: _CONFLICT, 423: _LOCKED},
    ),
    delete=extend_schema(
        operation_id="delete_state", parameters=_KEY, responses={200: _EMPTY, 423: _LOCKED}
    ),
)

lock_schema = extend_schema_view(
    post=extend_schema(
        operation_id="lock_state",
        parameters=_KEY,
        request={"application/json": _LOCK_INFO},
        responses={200: _LOCK_INFO, 423: _LOCKED},
    ),
    delete=extend_schema(
        operation_id="unlock_state",
        parameters=_KEY,
        request={"application/json": _LOCK_INFO},
        responses={200: _EMPTY, 409: _CONFLICT},
    ),
)

states_schema = extend_schema_view(list=extend_schema(operation_id="list_states"))
applications_schema = resource_schema("application", ApplicationSerializer)
components_schema = resource_schema("component", ComponentSerializer)
environments_schema = resource_schema("environment", EnvironmentSerializer)
