"""OpenAPI schema of the counts over all states."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from drf_spectacular.utils import extend_schema, extend_schema_view

from infra_service.lib.api.openapi_words import answer_example
from infra_service.lib.api.struct_schemas import page_of
from states.api.answers import (
    EngineCount,
    ProviderCount,
    ResourceTypeCount,
    TerraformVersionCount,
)
from states.models.engines import Engine


def _counts(plural: str, example: msgspec.Struct, subject: str) -> Any:
    page = {plural: [msgspec.to_builtins(example)], "next_page_token": ""}
    return extend_schema_view(
        count=extend_schema(
            operation_id=f"count_{plural}",
            description=f"{subject}, ordered by name, over the current versions of all states "
            "within the caller's binding. The numbers are as current as the resource index.",
            responses={200: page_of(type(example), plural)},
            examples=[answer_example(page)],
        )
    )


providers_schema: Final = _counts(
    "providers",
    ProviderCount("registry.terraform.io/hashicorp/aws", 12, 340, 21),
    "Number of states and resources per provider",
)
resource_types_schema: Final = _counts(
    "resource_types",
    ResourceTypeCount("aws_s3_bucket", 9, 31, 2),
    "Number of states and resources per resource type",
)
versions_schema: Final = _counts(
    "terraform_versions",
    TerraformVersionCount("1.11.4", 12),
    "Number of states per version of Terraform or OpenTofu",
)
engines_schema: Final = _counts(
    "engines",
    EngineCount(Engine.OPENTOFU, 12, 3),
    "Number of states per engine that wrote them",
)
