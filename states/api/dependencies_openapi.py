"""OpenAPI schema of the dependencies of a state."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema, extend_schema_view

from infra_service.lib.api.openapi_words import answer_example, error_docs
from infra_service.lib.api.struct_schemas import schema_of
from states.api import samples
from states.api.answers import DependencyPage
from states.api.states_openapi import A_STATE
from states.errors import StateNotFound


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
        description="List the states that the current version reads with `terraform_remote_state`, "
        "then the states that read this state, according to the resource index. `state` is null "
        "if this service does not store the other state, or if that state is outside the caller's "
        "binding.",
        parameters=[A_STATE],
        responses={
            200: schema_of(DependencyPage),
            **error_docs(StateNotFound),
        },
        examples=[
            answer_example(
                {"reads": [_READS, _EXTERNAL], "read_by": [_READ_BY], "next_page_token": ""}
            )
        ],
    )
)
