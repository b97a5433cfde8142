"""OpenAPI schema of the counts over all states."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema, extend_schema_view

from infra_service.lib.api.openapi_words import Named, Page, answer_example, list_of, object_of

_INTEGER: Final = {"type": "integer", "minimum": 0}
_OF_RESOURCES: Final = {
    "resources": {**_INTEGER, "description": "Managed instances, including deposed instances."},
    "data_sources": {**_INTEGER, "description": "Instances of data sources."},
}


def _counts(name: str, plural: str, field: str, example: Any, what: str, **numbers: Any) -> Any:
    item = Named(
        f"{name}Count",
        object_of(
            **{
                field: {"type": "string"},
                "states": {**_INTEGER, "description": "States that have it."},
                **numbers,
            }
        ),
    )
    return extend_schema_view(
        count=extend_schema(
            operation_id=f"count_{plural}",
            description=f"{what}, in the order of their names, over the current versions of all "
            "states within the caller's binding. The numbers are updated with the index "
            "of resources.",
            responses={200: Page(f"{name}CountPage", **{plural: list_of(item)})},
            examples=[answer_example({plural: [example], "next_page_token": ""})],
        )
    )


providers_schema: Final = _counts(
    "Provider", "providers", "provider",
    {
        "provider": "registry.terraform.io/hashicorp/aws",
        "states": 12, "resources": 340, "data_sources": 21,
    },
    "Number of states and resources per provider",
    **_OF_RESOURCES,
)  # fmt: skip
resource_types_schema: Final = _counts(
    "ResourceType", "resource_types", "resource_type",
    {"resource_type": "aws_s3_bucket", "states": 9, "resources": 31, "data_sources": 2},
    "Number of states and resources per resource type",
    **_OF_RESOURCES,
)  # fmt: skip
versions_schema: Final = _counts(
    "TerraformVersion", "terraform_versions", "terraform_version",
    {"terraform_version": "1.11.4", "states": 12},
    "Number of states per version of Terraform or OpenTofu",
)  # fmt: skip
