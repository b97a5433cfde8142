"""OpenAPI schema of the resource index."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema, extend_schema_view

from infra_service.lib.api.openapi_words import answer_example
from infra_service.lib.api.struct_schemas import schema_of
from states.api import samples
from states.api.answers import ResourceIndexAnswer

index_schema = extend_schema_view(
    show=extend_schema(
        operation_id="get_resource_index",
        description="Return the lag of the resource index for the states within the caller's "
        "binding, and a page of the states that cannot be indexed, with the reasons.",
        responses={200: schema_of(ResourceIndexAnswer)},
        examples=[answer_example(samples.RESOURCE_INDEX)],
    ),
)
