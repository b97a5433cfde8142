"""OpenAPI schema of applications, components and environments."""

from __future__ import annotations

from typing import Any, Final

from apikeys.errors import BindingInsufficient
from infra_service.lib.api.openapi_words import resource_schema
from states.api import samples
from states.api.backend_openapi import FROZEN
from states.api.catalogue_serializers import (
    ApplicationSerializer,
    ComponentSerializer,
    EnvironmentSerializer,
)
from states.errors import EntryExists, EntryInUse, SlugTaken

_CHANGED: Final = (BindingInsufficient, SlugTaken)
_REACH: Final[dict[str, Any]] = {
    "create_errors": (*_CHANGED, EntryExists),
    "change_errors": _CHANGED,
    "change_docs": FROZEN,
    "delete_errors": (BindingInsufficient, EntryInUse),
}

applications_schema = resource_schema(
    "application",
    "Applications: groups of components.",
    ApplicationSerializer,
    samples.APPLICATION,
    **_REACH,
)
components_schema = resource_schema(
    "component",
    "Components: deployable units of infrastructure, each with a state in each environment.",
    ComponentSerializer,
    samples.COMPONENT,
    **_REACH,
)
environments_schema = resource_schema(
    "environment",
    "Environments: deployment targets of components.",
    EnvironmentSerializer,
    samples.ENVIRONMENT,
    **_REACH,
)
