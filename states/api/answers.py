"""Responses about all states: dependencies, the resource index, and counts."""

from __future__ import annotations

import uuid
from typing import Annotated

from msgspec import Meta, Struct

from infra_service.lib.api.pagination import NextPageToken

_ComponentId = Annotated[uuid.UUID, Meta(description="The id of the state's component.")]
_ComponentSlug = Annotated[
    str | None, Meta(description="The component's slug in addresses; null until its name is set.")
]
_EnvironmentId = Annotated[uuid.UUID, Meta(description="The id of the state's environment.")]
_EnvironmentSlug = Annotated[
    str | None,
    Meta(description="The environment's slug in addresses; null until its name is set."),
]
_Address = Annotated[
    str, Meta(description="The address of the data source in the state that reads.")
]


class OtherState(Struct):
    """The other state of a dependency."""

    id: Annotated[uuid.UUID, Meta(description="The id of the state.")]
    component_id: _ComponentId
    component_slug: _ComponentSlug
    environment_id: _EnvironmentId
    environment_slug: _EnvironmentSlug


class StateRead(Struct):
    """A `terraform_remote_state` data source of the state."""

    address: _Address
    backend: Annotated[
        str, Meta(description="The type of the backend that it reads, such as `http` or `s3`.")
    ]
    location: Annotated[
        str,
        Meta(
            description="Location of the other state, without user, password and query; empty if "
            "it cannot be shown without a possible secret."
        ),
    ]
    state: Annotated[
        OtherState | None,
        Meta(
            description="The state that is read; null if it is not stored in this service or is "
            "outside the caller's binding."
        ),
    ]


class StateReader(Struct):
    """A `terraform_remote_state` data source of another state that reads this state."""

    address: _Address
    state: Annotated[OtherState, Meta(description="The state with the data source.")]


class DependencyPage(Struct):
    """A page of the dependencies: first those that the state reads, then its readers."""

    reads: Annotated[list[StateRead], Meta(description="The states that the state reads.")]
    read_by: Annotated[list[StateReader], Meta(description="The states that read the state.")]
    next_page_token: NextPageToken
