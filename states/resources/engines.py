"""The engine that wrote a document.

A document does not contain the name of its engine. However, Terraform and OpenTofu add the host of
their own registry to the address of a provider, unless the configuration contains a host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from states.models.engines import Engine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from states.resources.extraction import Found

_OF_REGISTRIES: Final = {
    "registry.terraform.io": Engine.TERRAFORM,
    "registry.opentofu.org": Engine.OPENTOFU,
}


def engine_of(resources: Iterable[Found]) -> Engine:
    """Return the engine, detected from the registries of the providers."""
    hosts = {one.provider.partition("/")[0] for one in resources}
    found = [engine for host, engine in _OF_REGISTRIES.items() if host in hosts]
    if len(found) > 1:
        return Engine.MIXED
    return found[0] if found else Engine.UNKNOWN
