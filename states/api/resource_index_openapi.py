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
        description="The lag of the index of resources for the states within the caller's binding, "
        "and, in pages, the states that it cannot read, with the reason.",
        responses={200: schema_of(ResourceIndexAnswer)},
        examples=[answer_example(samples.RESOURCE_INDEX)],
    ),
)
