"""OpenAPI schema of the dependencies of a state."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema, extend_schema_view

from infra_service.lib.api.openapi_words import (
    Named,
    Page,
    answer_example,
    error_docs,
    list_of,
    object_of,
)
from states.api import samples
from states.api.states_openapi import A_STATE
from states.errors import StateNotFound

_UUID: Final = {"type": "string", "format": "uuid"}
_SLUG: Final = {"type": ["string", "null"]}
_OTHER: Final = Named(
    "OtherState",
    object_of(
        id=_UUID,
        component_id=_UUID,
        component_slug=_SLUG,
        environment_id=_UUID,
        environment_slug=_SLUG,
    ),
)
_ADDRESS: Final = {"type": "string", "description": "Of the data source in the state that reads."}
_LOCATION: Final = {
    "type": "string",
    "description": "Location of the other state, without user, password and query; empty "
    "if it cannot "
    "be shown without a possible secret.",
}


def _sample(slug: str) -> dict[str, Any]:
    names = ("component_id", "environment_id", "environment_slug")
    same = {name: samples.STATE[name] for name in names}
    return {"id": samples.STATE["id"], "component_slug": slug, **same}


_READS: Final = {
    "address": "data.terraform_remote_state.network",
    "backend": "http",
    "location": "https://infra.example.com/api/v1/state/at/network/production",
    "state": _sample("network"),
}
_EXTERNAL: Final = {
    "address": "data.terraform_remote_state.dns",
    "backend": "s3",
    "location": "example-states/dns.tfstate",
    "state": None,
}
_READ_BY: Final = {
    "address": "module.app.data.terraform_remote_state.this",
    "state": _sample("shop"),
}

dependencies_schema = extend_schema_view(
    dependencies=extend_schema(
        operation_id="list_state_dependencies",
        description="The states that the current version reads with `terraform_remote_state`, then "
        "the states that read it, from the index of resources. `state` is null if the "
        "other state is not stored in this service, or is outside the caller's binding.",
        parameters=[A_STATE],
        responses={
            200: Page(
                "DependencyPage",
                reads=list_of(
                    Named(
                        "StateRead",
                        object_of(
                            address=_ADDRESS,
                            backend={"type": "string"},
                            location=_LOCATION,
                            state={"anyOf": [_OTHER, {"type": "null"}]},
                        ),
                    )
                ),
                read_by=list_of(Named("StateReader", object_of(address=_ADDRESS, state=_OTHER))),
            ),
            **error_docs(StateNotFound),
        },
        examples=[
            answer_example(
                {"reads": [_READS, _EXTERNAL], "read_by": [_READ_BY], "next_page_token": ""}
            )
        ],
    )
)
