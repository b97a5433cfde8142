"""docs/reference/openapi.yaml as generators of clients read it, and who tries it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from infra_service import __version__
from tests.docs.test_openapi import DOCUMENT, OPERATIONS

SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a part of the document, but not what is in examples."""
    if isinstance(node, dict):
        yield node
        node = [part for key, part in node.items() if key not in {"example", "examples"}]
    if isinstance(node, list):
        for part in node:
            yield from nodes(part)


def test_the_version_and_the_server() -> None:
    assert DOCUMENT["info"]["version"] == __version__
    assert [server["url"] for server in DOCUMENT["servers"]] == ["/"]


def test_a_choice_has_no_form_that_takes_everything() -> None:
    """Null would be of two forms of ``oneOf``, and generators find no name for "anything"."""
    assert [node for node in nodes(DOCUMENT) if {} in node.get("oneOf", ())] == []


def test_no_two_modules_differ_by_an_s() -> None:
    tags = [tag["name"] for tag in DOCUMENT["tags"]]
    for names in (tags, OPERATIONS, SCHEMAS):
        singular = Counter(re.sub("s(?=[-_A-Z]|$)", "", name).lower() for name in names)
        assert [name for name, count in singular.items() if count > 1] == []


def test_names_say_what_is_meant() -> None:
    """None that a library has made up, and none for what nobody sends."""
    assert [
        name for name in SCHEMAS if re.search("Enum$|^Blank|^Null|^Patched|Nothing|Type[0-9]", name)
    ] == []
    sent = {node["$ref"].rpartition("/")[2] for node in nodes(DOCUMENT) if "$ref" in node}
    assert SCHEMAS.keys() <= sent


def test_what_is_one_of_several_forms_has_a_name() -> None:
    """Without one, generators number it: UpdateMaskType1Item."""
    for name, schema in SCHEMAS.items():
        for node in nodes(schema):
            for form in (*node.get("anyOf", ()), *node.get("oneOf", ())):
                inner = form.get("items", form)
                assert not {"enum", "properties"} & inner.keys(), name


def test_enumerations_are_of_text() -> None:
    for node in nodes(DOCUMENT["components"]["schemas"]):
        if isinstance(node.get("enum"), list):
            assert node["type"] == "string"
            assert all(isinstance(value, str) for value in node["enum"])


def test_no_field_has_a_default() -> None:
    """Generators would take it for one that is always there, and demand it of callers."""
    assert [
        f"{name}.{field}"
        for name, schema in SCHEMAS.items()
        for field, described in schema.get("properties", {}).items()
        if any("default" in node for node in nodes(described))
    ] == []


def test_creations_have_one_form() -> None:
    creations = {
        name: operation
        for name, (_, method, operation) in OPERATIONS.items()
        if method == "post" and "201" in operation["responses"]
    }

    assert len(creations) == 9
    for name, operation in creations.items():
        _, _, resource = name.partition("_")
        asked = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        schema = SCHEMAS[asked.rpartition("/")[2]]
        title = "".join(word.capitalize() for word in resource.split("_"))
        assert asked.endswith(f"/Create{title}Request")
        assert schema["required"] == [resource] == list(schema["properties"])
        done = operation["responses"]["201"]["content"]["application/json"]["schema"]["$ref"]
        assert SCHEMAS[done.rpartition("/")[2]]["required"] in ([resource], [resource, "secret"])


def test_examples_of_requests_call_nothing_by_a_name_that_somebody_uses() -> None:
    """Swagger UI sends them as they are."""
    named = {
        name: sorted(set(re.findall(r"'(?:name|slug)': '([^']+)'", str(example["value"]))))
        for name, (_, method, operation) in OPERATIONS.items()
        if method in ("post", "patch") and re.match("create|update", name)
        for example in operation["requestBody"]["content"]["application/json"]["examples"].values()
    }

    assert len(named) == 16
    assert {name for name, names in named.items() if names != ["example"]} == set()
