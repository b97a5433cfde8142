"""The response with the difference between two versions."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct

from infra_service.lib.api.pagination import NextPageToken
from states.document.answers import (
    CheckResultChange,
    DifferenceSummary,
    MetadataChange,
    OutputChange,
    ResourceChange,
)


class ComparedVersion(Struct):
    """A version, with the Terraform version that wrote it."""

    number: Annotated[int, Meta(ge=0, description="The number of the version.")]
    serial: Annotated[int, Meta(description="The serial of the document.")]
    lineage: Annotated[str | None, Meta(description="The lineage of the document.")]
    md5: Annotated[str, Meta(description="The MD5 digest of the document, in hexadecimal.")]
    size_bytes: Annotated[int, Meta(ge=0, description="The size of the document, in bytes.")]
    created_at: Annotated[
        str,
        Meta(
            description="The time of the push, restore or import.",
            extra_json_schema={"format": "date-time"},
        ),
    ]
    created_by: Annotated[str, Meta(description="The name of the caller that created the version.")]
    token_id: Annotated[
        str,
        Meta(description="The id of the caller's token; empty if a command created the version."),
    ]
    terraform_version: Annotated[
        str | None, Meta(description="The version of Terraform or OpenTofu, such as `1.11.4`.")
    ]
    imported: Annotated[
        Any,
        Meta(
            description="Metadata from the source of an imported version; otherwise absent.",
            extra_json_schema={"$ref": "#/components/schemas/Imported"},
        ),
    ] = UNSET


class Difference(Struct):
    """A page of the changes between two versions: outputs, then resources, then checks."""

    before: Annotated[
        ComparedVersion | None,
        Meta(description="The version to compare with; null if no earlier version is stored."),
    ]
    after: Annotated[ComparedVersion, Meta(description="The version in the path.")]
    summary: Annotated[DifferenceSummary, Meta(description="The numbers of changes on all pages.")]
    metadata: Annotated[
        list[MetadataChange],
        Meta(description="The change to `terraform_version`; empty if the value is unchanged."),
    ]
    outputs: Annotated[list[OutputChange], Meta(description="Changed outputs on this page.")]
    resources: Annotated[
        list[ResourceChange], Meta(description="Changed resource instances on this page.")
    ]
    check_results: Annotated[
        list[CheckResultChange], Meta(description="Changed check results on this page.")
    ]


class DifferencePage(Struct):
    """A response with a page of the difference between two versions."""

    diff: Annotated[Difference, Meta(description="The difference; lists continue on later pages.")]
    next_page_token: NextPageToken
