"""What is hidden, and where else."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from states import contents, documents
from states.effort import Effort
from states.hidden import MASK
from states.secret_values import Secrets
from tests.states.samples import AFTER, BEFORE, PASSWORDS, instance, path, resource, state


def shown(document: bytes, *, hide: bool = True) -> list[Any]:
    """Return the resources of a state, as they are shown."""
    page = contents.resources(documents.compress(document), start=0, size=1000, hide=hide)
    found: list[Any] = msgspec.json.decode(page.items)
    return found


def shown_outputs(document: bytes, *, hide: bool = True) -> list[Any]:
    page = contents.outputs(documents.compress(document), start=0, size=1000, hide=hide)
    found: list[Any] = msgspec.json.decode(page.items)
    return found


def attributes(values: Any, *paths: Any, other: Any = None) -> Any:
    """Return the attributes of a thing as shown, and those of another one in the same state."""
    first, second = shown(
        state(resource("a", instance(values, *paths)), resource("b", instance(other)))
    )
    return first["attributes"], second["attributes"]  # fmt: skip


@pytest.mark.parametrize("document", [BEFORE, AFTER])
def test_recorded_states_tell_no_password(document: bytes) -> None:
    text = json.dumps([shown(document), shown_outputs(document)]).encode()

    assert not any(password in text for password in PASSWORDS)
    assert MASK.encode() in text


def test_marked_places_and_all_under_them() -> None:
    found, _ = attributes({"a": {"b": 1, "c": [1, 2]}, "d": "open"}, path("a"))

    assert found == {"a": MASK, "d": "open"}


def test_a_dynamic_value_keeps_its_type_to_itself() -> None:
    value = {"user": "ann", "password": "correct-horse"}
    dynamic = {"value": {"login": value}, "type": ["object", {"login": ["map", "string"]}]}
    plain = {"value": "correct-horse", "type": "string"}

    found, other = attributes({"input": dynamic}, path("input", "login"), other={"output": plain})

    assert found == {"input": {"value": {"login": MASK}, "type": MASK}}
    assert other == {"output": {"value": MASK, "type": "string"}}


@pytest.mark.parametrize(
    ("secret", "elsewhere", "hidden"),
    [
        ("abcd", "abcd", True),
        ("abc", "abc", False),
        ("1234", 1234, True),
        (1234, "1234", True),
        (0.125, 0.125, True),
        (123, 123, False),
        (True, True, False),
        (None, None, False),
        ("", "", False),
        ("hunter2", "postgres://admin:hunter2@db", True),
        ("abcde", "xx abcde xx", False),
        ("hunter2", "hunter", False),
        ({"a": "correct", "b": 1}, {"b": 1, "a": "correct"}, True),
        ({"a": "x"}, {"a": "x"}, True),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        ({}, {}, False),
        ({"user": "hunter2"}, {"hunter2": 1}, True),
        ({"user": "hunter2"}, {"user": "ann"}, False),
    ],
)  # fmt: skip
def test_the_same_value_elsewhere(secret: Any, elsewhere: Any, hidden: bool) -> None:
    _, found = attributes({"secret": secret}, path("secret"), other={"copy": elsewhere})

    assert found == {"copy": MASK if hidden else elsewhere}


@pytest.mark.parametrize("secret", ["x", 7, True, False])
def test_within_its_object_even_a_short_one(secret: Any) -> None:
    values = {"input": secret, "output": secret, "other": [secret, None, "open"]}

    found, _ = attributes(values, path("input"))

    assert found == {"input": MASK, "output": MASK, "other": [MASK, None, "open"]}


def test_a_secret_that_begins_like_another() -> None:
    values = {"a": "secret", "b": "secret-longer", "c": "zzzzzz"}
    other = {"x": "my secret-longer", "y": "a secret", "z": "secre zzzzz", "w": "not zzzzzz"}

    _, found = attributes(values, path("a"), path("b"), path("c"), other=other)

    assert found == {"x": MASK, "y": MASK, "z": "secre zzzzz", "w": MASK}


def test_outputs() -> None:
    document = state(
        resource("a", instance({"password": "correct-horse"}, path("password"))),
        outputs={
            "object": {"value": {"k": "v"}, "type": ["object", {"k": "string"}], "sensitive": True},
            "text": {"value": "v", "type": "string", "sensitive": True},
            "copy": {"value": ["correct-horse"], "type": ["tuple", ["string"]]},
            "open": {"value": {"a": 1}, "type": ["object", {"a": "number"}]},
        },
    )

    kind = ["object", {"a": "number"}]
    assert shown_outputs(document) == [
        {"name": "copy", "value": [MASK], "type": MASK, "sensitive": False},
        {"name": "object", "value": MASK, "type": MASK, "sensitive": True},
        {"name": "open", "value": {"a": 1}, "type": kind, "sensitive": False},
        {"name": "text", "value": MASK, "type": "string", "sensitive": True},
    ]
    assert shown_outputs(document, hide=False)[1] == {
        "name": "object",
        "value": {"k": "v"},
        "type": ["object", {"k": "string"}],
        "sensitive": True,
    }


def test_with_the_scope_values_are_as_they_were_written() -> None:
    text = state(resource("a", instance({"n": 0}, path("n")))).replace(
        b'"n": 0', b'"n":  0.1234567890123456789012345'
    )
    page = contents.resources(documents.compress(text), start=0, size=1, hide=False)

    assert b'{"n":  0.1234567890123456789012345}' in bytes(page.items)


def test_secrets_that_are_added_later_count() -> None:
    secrets = Secrets(Effort(0))
    secrets.add("first-secret")
    assert secrets.telling(["the first-secret"])

    secrets.add("second-secret")

    assert secrets.telling(["the second-secret"])


_scalar = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
_json = st.recursive(
    _scalar,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(secret=st.text(min_size=6, max_size=12), around=_json, before=st.text(max_size=5))
def test_a_long_secret_is_never_told(secret: str, around: Any, before: str) -> None:
    """Wherever it stands, in values and in the keys of maps."""
    values = {
        "marked": secret,
        "copy": {"deep": [around, secret, {before + secret: 1}]},
        "told": f"{before}{secret}",
    }

    (item,) = shown(state(resource("a", instance(values, path("marked")))))

    assert item["attributes"]["marked"] == item["attributes"]["told"] == MASK
    assert item["attributes"]["copy"]["deep"][1:] == [MASK, MASK]
