"""Response structures: dependencies of a state, the resource index, and counts over all states."""

from __future__ import annotations

import uuid
from typing import Annotated

from msgspec import Meta, Struct

from infra_service.lib.api.pagination import NextPageToken
from states.index_lag import MOST

_ComponentId = Annotated[uuid.UUID, Meta(description="The id of the state's component.")]
_ComponentSlug = Annotated[
    str | None, Meta(description="The component's slug in addresses; null until its name is set.")
]
_EnvironmentId = Annotated[uuid.UUID, Meta(description="The id of the state's environment.")]
_EnvironmentSlug = Annotated[
    str | None,
    Meta(description="The environment's slug in addresses; null until its name is set."),
]
_Address = Annotated[str, Meta(description="The address of the data source in the reading state.")]


class OtherState(Struct):
    """The other state of a dependency."""

    id: Annotated[uuid.UUID, Meta(description="The id of the state, as in `/api/v1/states/{id}`.")]
    component_id: _ComponentId
    component_slug: _ComponentSlug
    environment_id: _EnvironmentId
    environment_slug: _EnvironmentSlug


class StateRead(Struct):
    """A `terraform_remote_state` data source of the state."""

    address: _Address
    backend: Annotated[
        str, Meta(description="The type of the other state's backend, such as `http` or `s3`.")
    ]
    location: Annotated[
        str,
        Meta(
            description="The location of the other state, without user name, password and query "
            "string. Empty if the location may still contain a secret."
        ),
    ]
    state: Annotated[
        OtherState | None,
        Meta(
            description="The other state; null if the service does not store it, or if it is "
            "outside the caller's binding."
        ),
    ]


class StateReader(Struct):
    """A `terraform_remote_state` data source of another state that reads this state."""

    address: _Address
    state: Annotated[OtherState, Meta(description="The state with the data source.")]


class DependencyPage(Struct):
    """A page of dependencies: first the states that the state reads, then its readers."""

    reads: Annotated[list[StateRead], Meta(description="The states that this state reads.")]
    read_by: Annotated[list[StateReader], Meta(description="The states that read this state.")]
    next_page_token: NextPageToken


class UnreadableState(Struct):
    """A state whose current version cannot be indexed."""

    state_id: Annotated[uuid.UUID, Meta(description="The id, as in `/api/v1/states/{id}`.")]
    component_id: _ComponentId
    component_slug: _ComponentSlug
    environment_id: _EnvironmentId
    environment_slug: _EnvironmentSlug
    version_number: Annotated[int, Meta(description="The version that could not be indexed.")]
    problem: Annotated[
        str,
        Meta(description="The cause: the `reason` of an error, `NAMES_TOO_LONG` or `UNEXPECTED`."),
    ]


class ResourceIndex(Struct):
    """The lag of the resource index, and the states that cannot be indexed."""

    waiting: Annotated[
        int,
        Meta(
            description="Number of states whose current version is not in the index, up to "
            f"{MOST:,}."
        ),
    ]
    waiting_is_exact: Annotated[bool, Meta(description="False if `waiting` is only a minimum.")]
    oldest_waiting_seconds: Annotated[
        float,
        Meta(
            description="Age of the oldest current version that is not in the index; 0 if there "
            "is no such version."
        ),
    ]
    unreadable: Annotated[
        list[UnreadableState],
        Meta(description="The unreadable states of this page, in the order of their ids."),
    ]


class ResourceIndexAnswer(Struct):
    """A page of the unreadable states, with the lag of the index."""

    resource_index: Annotated[
        ResourceIndex, Meta(description="The index, limited to the caller's binding.")
    ]
    next_page_token: NextPageToken


_States = Annotated[
    int, Meta(ge=0, description="Number of states with this value in their current version.")
]
_Resources = Annotated[
    int,
    Meta(ge=0, description="Number of managed resource instances, including deposed objects."),
]
_DataSources = Annotated[int, Meta(ge=0, description="Number of data source instances.")]


class ProviderCount(Struct):
    """The states and resources of a provider."""

    provider: Annotated[
        str,
        Meta(description="The source address, such as `registry.terraform.io/hashicorp/aws`."),
    ]
    states: _States
    resources: _Resources
    data_sources: _DataSources


class ResourceTypeCount(Struct):
    """The states and resources of a resource type."""

    resource_type: Annotated[str, Meta(description="The type, such as `aws_s3_bucket`.")]
    states: _States
    resources: _Resources
    data_sources: _DataSources


class TerraformVersionCount(Struct):
    """The states whose current version was written by a version of Terraform or OpenTofu."""

    terraform_version: Annotated[str, Meta(description="The version, such as `1.11.4`.")]
    states: _States


class EngineCount(Struct):
    """The states whose current version was written by an engine."""

    engine: Annotated[
        str,
        Meta(
            description="The engine, detected from the registries of the providers.",
            extra_json_schema={"$ref": "#/components/schemas/Engine"},
        ),
    ]
    states: _States
    client_encrypted_states: Annotated[
        int, Meta(ge=0, description="Number of these states that are encrypted on the client.")
    ] = 0
