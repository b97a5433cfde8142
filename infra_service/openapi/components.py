"""Parts of the OpenAPI document that stand once and are referred to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.plumbing import ComponentIdentity, ResolvedComponent

from infra_service.lib.api.openapi_words import Named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drf_spectacular.plumbing import ComponentRegistry


def component(registry: ComponentRegistry, kind: str, name: str, described: Any) -> dict[str, str]:
    """Register what stands once, such as a header or a response, and return the reference."""
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
    """Return the node with each named schema in it replaced by a reference to its component."""
    if isinstance(node, list):
        return [lift(entry, registry) for entry in node]
    if not isinstance(node, dict):
        return node
    lifted = {key: lift(value, registry) for key, value in node.items()}
    if isinstance(node, Named):
        return component(registry, ResolvedComponent.SCHEMA, node.name, lifted)
    return lifted


def tidied(result: dict[str, Any], **_generator: Any) -> dict[str, Any]:
    """Return the document as clients are best generated from it; a hook of drf-spectacular.

    A field with a default is taken for one that is always there, which no caller need send. Where
    it matters, the field's description tells it. Schemas that nothing refers to are left out.
    """
    schemas = result["components"]["schemas"]
    for schema in schemas.values():
        for described in schema.get("properties", {}).values():
            described.pop("default", None)
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
