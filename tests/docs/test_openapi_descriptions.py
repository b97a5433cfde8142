"""Every schema, field and enum of docs/reference/openapi.yaml has a description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.docs.test_openapi import OPERATIONS, resolved
from tests.docs.test_openapi_names import SCHEMAS, nodes

#: Tags whose schemas are not complete yet, to be emptied.
INCOMPLETE = {
    "access-tokens", "api-keys", "audit-events", "clusters", "images", "issuers", "service",
    "trust-policies", "webhooks", "workloads",
}  # fmt: skip


def used_schemas() -> set[str]:
    """Return the names of the schemas of the operations with complete tags."""
    references: set[str] = set()
    waiting = [part for _, _, part in OPERATIONS.values() if not INCOMPLETE & set(part["tags"])]
    while waiting:
        found = {node["$ref"] for node in nodes(waiting.pop()) if "$ref" in node} - references
        references |= found
        waiting += [resolved({"$ref": reference}) for reference in found]
    return {reference.rpartition("/")[2] for reference in references if "/schemas/" in reference}


def undescribed(name: str) -> Iterator[str]:
    """Yield the schema and its fields without descriptions.

    A field that is only a reference has the description of its schema.
    """
    if not SCHEMAS[name].get("description"):
        yield name
    for node in nodes(SCHEMAS[name]):
        properties: dict[str, Any] = node.get("properties", {})
        for field, described in properties.items():
            if not described.get("description") and "$ref" not in described:
                yield f"{name}.{field}"


def test_every_schema_and_field_has_a_description() -> None:
    names = used_schemas()
    assert INCOMPLETE or names == SCHEMAS.keys()
    assert [found for name in sorted(names) for found in undescribed(name)] == []


def test_a_description_adds_to_the_name() -> None:
    """It has more words than the name of its field."""
    assert [
        f"{name}.{field}"
        for name in sorted(used_schemas())
        for field, described in SCHEMAS[name].get("properties", {}).items()
        if (text := described.get("description"))
        and not {*text.lower().strip(".").split()} - {*field.lower().split("_"), "the", "of", "a"}
    ] == []
