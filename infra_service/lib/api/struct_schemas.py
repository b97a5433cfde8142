"""Derive the JSON schemas of responses from msgspec structs.

The docstrings of structs and enums, and ``Meta(description=…)`` of fields, become descriptions.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import msgspec

from infra_service.lib.api.openapi_words import Named, list_of
from infra_service.lib.api.pagination import page_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    Components = Mapping[str, dict[str, Any]]


def schema_of(struct: type[msgspec.Struct]) -> Named:
    """Return the schema of a struct. Nested structs and enums become named components."""
    _, components = msgspec.json.schema_components([struct], ref_template="{name}")
    return _component(struct.__name__, components)


def page_of(item: type[msgspec.Struct], plural: str, **beside: Any) -> Named:
    """Return the schema of a page of structs. ``beside`` are fields in addition to the list."""
    page = page_schema(plural, list_of(schema_of(item)), **beside)
    return Named(f"{item.__name__}Page", page)


def _component(name: str, components: Components) -> Named:
    """Return a component without the title, which repeats its name."""
    described = {"type": "string", **components[name]}  # msgspec omits the type of an enum
    del described["title"]
    paragraphs = inspect.cleandoc(described.get("description", "")).split("\n\n")
    text = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    described["description"] = text.replace("``", "`")
    return Named(name, _written(described, components))


def _written(node: Any, components: Components) -> Any:
    """Return a part of a schema in the form of the OpenAPI document.

    References with a description become ``allOf``, and nullable values get a list of types.
    """
    if isinstance(node, list):
        return [_written(each, components) for each in node]
    if not isinstance(node, dict):
        return node
    parts = {key: _written(part, components) for key, part in node.items()}
    if isinstance(name := parts.pop("$ref", None), str):
        # The reference is to a component of a serializer, or to a struct.
        named = {"$ref": name} if name.startswith("#") else _component(name, components)
        return {"allOf": [named], **parts} if parts else named
    forms = parts.get("anyOf", [])
    if forms and not any(isinstance(form, Named) for form in forms):
        del parts["anyOf"]
        for form in forms:
            parts |= form
        parts["type"] = [form["type"] for form in forms]
    return parts
