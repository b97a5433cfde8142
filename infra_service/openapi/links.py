"""OpenAPI links: what an answer names, and which operations take it.

They are found in the document itself. Who creates a resource may read, change and delete it; who
lists some may look at the first; who locks a state may push to it and unlock it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    Operations = dict[str, dict[str, Any]]

_VARIABLE: Final = re.compile(r"{(\w+)}")
_RESOURCE: Final = re.compile(r"/{(?P<variable>\w+)}(?P<rest>[/:][^{}]*)?$")


def with_links(result: dict[str, Any], **_hook: Any) -> dict[str, Any]:
    """Add the links to the document; drf-spectacular calls it."""
    paths: dict[str, Operations] = result["paths"]
    schemas = result["components"]["schemas"]
    for path, operations in paths.items():
        for method, expression in (("post", _created), ("get", _first)):
            answers = operations.get(method, {}).get("responses", {})
            code = "201" if method == "post" else "200"
            if code in answers and (pointer := expression(_schema(answers[code], schemas))):
                links = dict(_links(path, paths, pointer))
                if links:
                    answers[code]["links"] = links
    _link_locks(paths)
    return result


def _schema(answer: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of an answer's JSON body."""
    schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
    name = schema.get("$ref", "").rpartition("/")[2]
    properties: dict[str, Any] = schemas.get(name, {}).get("properties", {})
    return properties


def _created(properties: dict[str, Any]) -> str:
    """Return where the id of a created resource is: in its wrapper."""
    return f"{next(iter(properties))}/id" if properties else ""


def _first(properties: dict[str, Any]) -> str:
    """Return where the first of a list is named."""
    if "next_page_token" not in properties:
        return ""
    name = next(iter(properties))
    return f"{name}/0/number" if name == "versions" else f"{name}/0/id"


def _links(
    path: str, paths: dict[str, Operations], pointer: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the operations of the resources below a path."""
    kept = {name: f"$request.path.{name}" for name in _VARIABLE.findall(path)}
    for other, operations in paths.items():
        match = _RESOURCE.fullmatch(other.removeprefix(path)) if other.startswith(path) else None
        if match:
            parameters = {**kept, match["variable"]: f"$response.body#/{pointer}"}
            for operation in operations.values():
                name = operation["operationId"]
                yield name, {"operationId": name, "parameters": parameters}


def _link_locks(paths: dict[str, Operations]) -> None:
    for path, operations in paths.items():
        if path.endswith("/lock"):
            state = {name: f"$request.path.{name}" for name in _VARIABLE.findall(path)}
            held = {**state, "ID": "$response.body#/ID"}
            operations["post"]["responses"]["200"]["links"] = {
                "push_state": {"operationId": "push_state", "parameters": held},
                "unlock_state": {
                    "operationId": "unlock_state",
                    "parameters": state,
                    "requestBody": "$response.body",
                },
            }
