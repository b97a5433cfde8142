"""Models of states: the catalogue, states and their versions, and the resource index."""

from states.models.catalogue import Application, Component, Environment, SlugClaim
from states.models.dependencies import StateDependency
from states.models.imported_versions import ImportedVersion
from states.models.installations import Installation
from states.models.leaked_tokens import LeakedToken
from states.models.resource_counts import CountTotal, StateCount
from states.models.resources import ResourceDigest, ResourceEntry
from states.models.states import KEY_NAME_LENGTH, OUTDATED, State, StateQuerySet
from states.models.version_facts import UsedVersion, VersionFacts
from states.models.versions import MAX_SERIAL, StateVersion

__all__ = [
    "KEY_NAME_LENGTH",
    "MAX_SERIAL",
    "OUTDATED",
    "Application",
    "Component",
    "CountTotal",
    "Environment",
    "ImportedVersion",
    "Installation",
    "LeakedToken",
    "ResourceDigest",
    "ResourceEntry",
    "SlugClaim",
    "State",
    "StateCount",
    "StateDependency",
    "StateQuerySet",
    "StateVersion",
    "UsedVersion",
    "VersionFacts",
]
