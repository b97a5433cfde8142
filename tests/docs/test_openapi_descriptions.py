"""Everything that docs/reference/openapi.yaml declares has a description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.docs.test_openapi import OPERATIONS, resolved
from tests.docs.test_openapi_names import SCHEMAS, nodes


def fields() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each schema's fields, also of objects inside: schema, name and field."""
    for schema, described in SCHEMAS.items():
        for node in nodes(described):
            for name, field in node.get("properties", {}).items():
                yield schema, name, field


def test_schemas_and_enums_have_descriptions() -> None:
    assert [name for name, schema in SCHEMAS.items() if not schema.get("description")] == []


def test_documented_fields_match() -> None:
    assert [f"{schema}.{name}" for schema, name, of in fields() if not of.get("description")] == []


def test_parameters_and_headers_have_descriptions() -> None:
    for name, (_, _, operation) in OPERATIONS.items():
        parts = [*operation.get("parameters", ())]
        for answer in operation["responses"].values():
            parts += resolved(answer).get("headers", {}).values()
        assert all(resolved(part).get("description") for part in parts), name


def test_a_description_adds_to_the_name() -> None:
    """It has more words than the name of its field."""
    fillers = {"the", "of", "a"}
    assert [
        f"{schema}.{name}"
        for schema, name, field in fields()
        if not {*field["description"].lower().strip(".").split()}
        - {*name.lower().split("_")}
        - fillers
    ] == []


def test_every_filter_field_is_described_or_a_field_of_the_items() -> None:
    assert [
        f"{name}: {field}"
        for name, (_, _, operation) in OPERATIONS.items()
        if name.startswith("list")
        for parameter in operation.get("parameters", [])
        for field, about in parameter.get("x-filter-fields", {}).items()
        if "description" not in about and field.partition(".")[0] not in fields_of_items(operation)
    ] == []


def fields_of_items(operation: dict[str, Any]) -> set[str]:
    """Return the fields of the items in a list."""
    (page,) = operation["responses"]["200"]["content"].values()
    parts = [resolved(part.get("items", part)) for part in nodes(resolved(page["schema"]))]
    return {field for part in parts for field in part.get("properties", {})}
