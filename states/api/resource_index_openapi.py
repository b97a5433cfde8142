"""OpenAPI schema of the resource index."""

from __future__ import annotations

from typing import Final

from drf_spectacular.utils import extend_schema, extend_schema_view

from infra_service.lib.api.openapi_words import Named, Page, answer_example, list_of, object_of
from states.api import samples
from states.index_lag import MOST

_UUID: Final = {"type": "string", "format": "uuid"}
_SLUG: Final = {"type": ["string", "null"]}
_INDEX: Final = Named(
    "ResourceIndex",
    object_of(
        waiting={
            "type": "integer",
            "description": f"States whose current version is not in the index, up to {MOST:,}.",
        },
        waiting_is_exact={"type": "boolean", "description": "False when there are more."},
        oldest_waiting_seconds={
            "type": "number",
            "description": "Age of the oldest current version that is not in the index; 0 "
            "if there is "
            "no such version.",
        },
        unreadable=list_of(
            Named(
                "UnreadableState",
                object_of(
                    state_id=_UUID,
                    component_id=_UUID,
                    component_slug=_SLUG,
                    environment_id=_UUID,
                    environment_slug=_SLUG,
                    version_number={"type": "integer"},
                    problem={
                        "type": "string",
                        "description": "The reason why the document cannot be indexed: "
                        "the reason of an "
                        "error, `NAMES_TOO_LONG` or `UNEXPECTED`.",
                    },
                ),
            )
        ),
    ),
)

index_schema = extend_schema_view(
    show=extend_schema(
        operation_id="get_resource_index",
        description="The lag of the index of resources for the states within the caller's binding, "
        "and, in pages, the states that it cannot read, with the reason.",
        responses={200: Page("ResourceIndexAnswer", resource_index=_INDEX)},
        examples=[answer_example(samples.RESOURCE_INDEX)],
    ),
)
