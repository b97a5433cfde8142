"""OpenAPI schema of the resources of all states, and of their index."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema, extend_schema_view

from infra_service.lib.api.openapi_words import answer_example, list_schema, request_example
from infra_service.lib.api.struct_schemas import schema_of
from states.api import samples
from states.api.answers import ResourceIndexAnswer
from states.api.resource_serializers import FindSerializer, ResourceEntrySerializer

_PAGE = {"resources": [samples.RESOURCE_ENTRY], "next_page_token": ""}

resources_schema = extend_schema_view(
    list=list_schema(
        "resource",
        "Resources of the current versions of all states within the caller's binding, "
        "from an index that `index_states --watch` updates, usually within seconds.",
        samples.RESOURCE_ENTRY,
    ),
)

find_schema = extend_schema_view(
    find=list_schema(
        "resource",
        "Find the states and addresses of a resource by an id, an ARN, a self link, a "
        "name, or the identity that Terraform stores. The search uses POST to keep the "
        "value out of access logs.",
        samples.RESOURCE_ENTRY,
        operation_id="find_resources",
        request=FindSerializer,
        responses={200: ResourceEntrySerializer(many=True)},
        examples=[
            request_example({"value": "arn:aws:s3:::example"}),
            answer_example(_PAGE),
        ],
    ),
)

index_schema = extend_schema_view(
    show=extend_schema(
        operation_id="get_resource_index",
        description="Return the lag of the resource index for the states within the caller's "
        "binding, and a page of the states that cannot be indexed, with the reasons.",
        responses={200: schema_of(ResourceIndexAnswer)},
        examples=[answer_example(samples.RESOURCE_INDEX)],
    ),
)
