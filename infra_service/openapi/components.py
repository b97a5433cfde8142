"""Shared parts of the OpenAPI document, used by reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.plumbing import (
    ComponentIdentity,
    ResolvedComponent,
    build_choice_description_list,
    deep_import_string,
)

from infra_service.lib.api.openapi_words import Named
from infra_service.openapi.enums import ENUMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drf_spectacular.plumbing import ComponentRegistry

#: The reference to null that drf-spectacular adds to nullable enums.
_NULL: Final = {"$ref": "#/components/schemas/NullEnum"}


def component(registry: ComponentRegistry, kind: str, name: str, described: Any) -> dict[str, str]:
    """Register a shared part, such as a header or a response, and return its reference."""
    part = ResolvedComponent(  # type: ignore[no-untyped-call]
        name,
        kind,
        schema=described,
        object=ComponentIdentity(name),  # type: ignore[no-untyped-call]
    )
    registry.register_on_missing(part)
    reference: dict[str, str] = part.ref
    return reference


def lift(node: Any, registry: ComponentRegistry) -> Any:
    """Return the node with each named schema replaced by a reference to its component."""
    if isinstance(node, list):
        return [lift(entry, registry) for entry in node]
    if not isinstance(node, dict):
        return node
    lifted = {key: lift(value, registry) for key, value in node.items()}
    if isinstance(node, Named):
        return component(registry, ResolvedComponent.SCHEMA, node.name, lifted)
    return lifted


def describe_enums(result: dict[str, Any], **_generator: Any) -> dict[str, Any]:
    """Describe the shared enums, as a hook of drf-spectacular."""
    schemas = result["components"]["schemas"]
    for name in ENUMS.keys() & schemas.keys():
        enum = ENUMS[name]
        text = enum.description
        if enum.has_explaining_labels:
            choices = deep_import_string(enum.choices)
            labels = build_choice_description_list(getattr(choices, "choices", choices))
            text = f"{text}\n\n{labels}"
        schemas[name]["description"] = text
    return result


def prepare_for_generators(result: dict[str, Any], **_generator: Any) -> dict[str, Any]:
    """Prepare the document for client generators, as a hook of drf-spectacular.

    Generators treat a field with a default as always present, so the hook removes all defaults.
    Descriptions mention the defaults that matter. The hook also inlines the null of nullable enums,
    and removes unreferenced schemas.
    """
    schemas = result["components"]["schemas"]
    for schema in schemas.values():
        for described in schema.get("properties", {}).values():
            described.pop("default", None)
            if _NULL in described.get("oneOf", ()):
                described["oneOf"] = [
                    {"type": "null"} if part == _NULL else part for part in described["oneOf"]
                ]
    while unused := schemas.keys() - set(_references(result)):
        for name in unused:
            del schemas[name]
    return result


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(reference := node.get("$ref"), str):
            yield reference.rpartition("/")[2]
        node = list(node.values())
    if isinstance(node, list):
        for entry in node:
            yield from _references(entry)
