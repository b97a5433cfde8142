"""Compare the HTTP API with the API of the last release.

The functions reduce an OpenAPI document to its promises, with one line for each promise. A promise
is an operation, a parameter, a field with its type, an accepted or returned value of an
enumeration, or a field that is always present. Clients of the release may rely on each promise
(docs/reference/stability.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("released_api.json")
#: The accepted breaking changes, each with the reason: {promise: reason}.
ACCEPTED: Final[dict[str, str]] = {}

_METHODS: Final = {"get", "put", "post", "delete", "head", "patch"}
Schema = Mapping[str, Any]
_KEPT: Final = {
    *("paths", "components", "schemas", "parameters", "requestBody", "responses", "content"),
    *("in", "name", "schema", "$ref", "type", "enum", "required", "properties", "items"),
    *("allOf", "oneOf", "anyOf", "additionalProperties"),
}
#: Objects with these keys contain names as keys, and all names are kept.
_NAMED: Final = {"paths", "schemas", "properties", "responses", "content"}


def reduced(document: Schema) -> dict[str, Any]:
    """Return the parts of an OpenAPI document that define promises."""
    kept = _reduced({"paths": document["paths"]}, is_named=False)
    for operations in kept["paths"].values():
        for operation in operations.values():
            responses = operation["responses"]
            operation["responses"] = {c: r for c, r in responses.items() if c.startswith("2")}
    schemas = _reduced({"schemas": document["components"]["schemas"]}, is_named=False)
    return {**kept, "components": schemas}


def write(document: Schema) -> None:
    """Write the reduced document of a release with one line per path and schema."""
    parts = reduced(document)
    paths, schemas = map(_lines, (parts["paths"], parts["components"]["schemas"]))
    FILE.write_text(f'{{"paths":{paths},"components":{{"schemas":{schemas}}}}}\n')


def _lines(block: Schema) -> str:
    """Return a JSON object with one line per member."""
    members = (
        f"{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}"
        for name, value in block.items()
    )
    return "{\n" + ",\n".join(members) + "\n}"


def breaks(released: Schema, current: Schema) -> list[str]:
    """Return the broken promises of the release, and new requirements for its clients.

    New fields, operations, optional parameters and enumeration values are compatible.
    """
    before, now = set(_promises(released)), set(_promises(current))
    places = {promise.partition(": ")[0] for promise in before}
    removed = [
        promise
        for promise in before - now
        # A field of a request may become optional.
        if _is_response(promise) or not promise.endswith(" required")
    ]
    new = [
        promise
        for promise in now - before
        if (promise.endswith(" required") and _is_demand(promise, places, before))
        # A field of a response has an additional type, such as null.
        or (_is_response(promise) and ": " in promise and promise.partition(": ")[0] in places)
    ]
    return sorted([f"removed: {p}" for p in removed] + [f"added: {p}" for p in new])


def _is_demand(promise: str, places: set[str], before: set[str]) -> bool:
    """Return whether the new API rejects requests of the release that lack a new required field."""
    place = promise.removesuffix(" required")
    method, path, part, *_ = place.split()
    if _is_response(promise) or f"{method} {path}" not in before:
        return False
    # Clients of the release do not send a new object, so its required fields do not affect them.
    return not part.startswith("request") or place.rpartition(".")[0] in places


def _is_response(promise: str) -> bool:
    return "".join(promise.split()[2:3]).isdigit()


def _reduced(node: Any, *, is_named: bool) -> Any:
    if isinstance(node, list):
        return [_reduced(part, is_named=False) for part in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _reduced(value, is_named=not is_named and key in _NAMED)
        for key, value in node.items()
        if is_named or key in _KEPT or key in _METHODS
    }


def _promises(document: Schema) -> Iterator[str]:
    schemas: Schema = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            name = f"{method.upper()} {path}"
            yield name
            for parameter in operation.get("parameters", []):
                place = f"{name} {parameter['in']} {parameter['name']}"
                if parameter.get("required"):
                    yield f"{place} required"
                yield from _of_schema(parameter["schema"], place, schemas)
            body = operation.get("requestBody", {})
            yield from _of_content(body, f"{name} request", schemas)
            for status, response in operation["responses"].items():
                yield f"{name} {status}"
                yield from _of_content(response, f"{name} {status} response", schemas)


def _of_content(body: Schema, place: str, schemas: Schema) -> Iterator[str]:
    for media_type, content in body.get("content", {}).items():
        yield f"{place} as {media_type}"
        yield from _of_schema(content.get("schema", {}), place, schemas)


def _of_schema(
    schema: Schema, place: str, schemas: Schema, within: tuple[str, ...] = ()
) -> Iterator[str]:
    if reference := schema.get("$ref"):
        if reference in within:  # recursive
            return
        name = reference.removeprefix("#/components/schemas/")
        yield from _of_schema(schemas[name], place, schemas, (*within, reference))
        return
    for part in (*schema.get("allOf", ()), *schema.get("oneOf", ()), *schema.get("anyOf", ())):
        yield from _of_schema(part, place, schemas, within)
    types = schema.get("type", [])
    for kind in [types] if isinstance(types, str) else types:
        yield f"{place}: {kind}"
    for value in schema.get("enum", []):
        yield f"{place} = {json.dumps(value)}"
    for name, field in schema.get("properties", {}).items():
        if name in schema.get("required", []):
            yield f"{place}.{name} required"
        yield from _of_schema(field, f"{place}.{name}", schemas, within)
    if isinstance(items := schema.get("items"), Mapping):
        yield from _of_schema(items, f"{place}[]", schemas, within)
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        yield from _of_schema(values, f"{place}{{}}", schemas, within)
