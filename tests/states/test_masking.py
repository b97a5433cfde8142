"""Masking of sensitive values, and of their copies elsewhere."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from states.document import contents, sealing
from states.document.hidden import MASK
from states.document.marked_places import MarkedPlace
from states.document.secret_rule import Reach, reach
from states.document.secret_values import Secrets
from states.document.value_names import Name
from states.document.work_limit import Effort
from states.errors import StateFormatUnsupported
from tests.states.samples import AFTER, BEFORE, PASSWORDS, instance, path, resource, state


def shown(document: bytes, *, hide: bool = True) -> list[Any]:
    """Return the resources of a state, as they are shown."""
    page = contents.resources(sealing.compress(document), start=0, size=1000, hide=hide)
    found: list[Any] = msgspec.json.decode(page.items)
    return found


def shown_outputs(document: bytes, *, hide: bool = True) -> list[Any]:
    page = contents.outputs(sealing.compress(document), start=0, size=1000, hide=hide)
    found: list[Any] = msgspec.json.decode(page.items)
    return found


def attributes(values: Any, *paths: Any, other: Any = None) -> Any:
    """Return the attributes of two resources of the same state as shown."""
    first, second = shown(
        state(resource("a", instance(values, *paths)), resource("b", instance(other)))
    )
    return first["attributes"], second["attributes"]  # fmt: skip


@pytest.mark.parametrize("document", [BEFORE, AFTER])
def test_recorded_states_hide_passwords(document: bytes) -> None:
    text = json.dumps([shown(document), shown_outputs(document)]).encode()

    assert not any(password in text for password in PASSWORDS)
    assert MASK.encode() in text


def test_marked_values_and_their_children_are_masked() -> None:
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
        ({"password": "hunter2"}, {"hunter2": 1}, True),
        ({"user": "hunter2"}, {"user": "ann"}, False),
        ({"a": {"b": ["x"]}}, {"a": {"b": ["x"]}}, True),
        ({"a": "open", "b": "hunter2hunter2"}, {"a": "open", "b": "hunter2hunter2"}, True),
        (True, "True", False),
        (None, "None", False),
        ("{not-json", "{not-json}", True),
        ("hunter2", '{"user": "ann", "port": 1}', False),
        ("hunter2", "[not json", False),
        ({"a": "one"}, {"a": "two"}, False),
        ("hunter7", base64.b64encode(b"hunter8").decode(), False),
        ("hunter7", base64.b64encode(b"xxiunter7").decode(), False),
    ],
)  # fmt: skip
def test_copies_of_a_marked_value_are_masked(secret: Any, elsewhere: Any, hidden: bool) -> None:
    _, found = attributes({"secret": secret}, path("secret"), other={"copy": elsewhere})

    assert found == {"copy": MASK if hidden else elsewhere}


def test_only_the_equal_map_is_masked() -> None:
    maps = [{"a": number} for number in range(1000)]

    _, found = attributes({"secret": {"a": 0}}, path("secret"), other={"maps": maps})

    assert found == {"maps": [MASK, *maps[1:]]}


@pytest.mark.parametrize("secret", ["x", 7])
def test_short_secrets_are_masked_within_their_object(secret: Any) -> None:
    values = {"input": secret, "output": secret, "other": [secret, None, "open"]}

    found, _ = attributes(values, path("input"))

    assert found == {"input": MASK, "output": MASK, "other": [MASK, None, "open"]}


@pytest.mark.parametrize(
    "value", ["", None, True, False, "eu-west-1", "admin", 5432, "5432", "10.0.0.0/16"]
)
def test_public_vocabulary_in_the_same_object_is_masked(value: Any) -> None:
    found, _ = attributes({"input": value, "other": [value]}, path("input"))

    assert found == {"input": MASK, "other": [value]}


@pytest.mark.parametrize(
    ("secret", "elsewhere", "hidden"),
    [
        ({"k": ["x", 7]}, {"k": ["x", 7]}, True),
        ({"k": ["x", 7]}, "x", False),
        ({"k": ["x", 7]}, 7, False),
        ({"password": ["x", 7]}, "x", True),
        ({"password": ["x", 7]}, 7, True),
        (True, "true", False),
        ("07", 7, False),
        (["", None], "", False),
        (["", None], None, False),
    ],
)
def test_parts_of_a_sensitive_value_are_masked_within_their_object(
    secret: Any, elsewhere: Any, hidden: bool
) -> None:
    found, _ = attributes({"input": secret, "output": elsewhere}, path("input"))

    assert found == {"input": MASK, "output": MASK if hidden else elsewhere}


@pytest.mark.parametrize("value", [None, "", {}, [], False])
def test_empty_sensitive_values_are_masked_too(value: Any) -> None:
    found, _ = attributes({"a": value}, path("a"))

    assert found == {"a": MASK}


def within_json(value: Any, times: int) -> Any:
    """Return the value as JSON within JSON, so many times."""
    for _ in range(times):
        value = json.dumps([value])
    return value


@pytest.mark.parametrize(("times", "hidden"), [(1, True), (3, True), (4, False)])
def test_json_is_looked_into_three_times(times: int, hidden: bool) -> None:
    """This secret is too short to be found within a text."""
    deep = within_json("abcd", times)

    _, found = attributes({"secret": "abcd"}, path("secret"), other={"copy": deep})
    assert found == {"copy": MASK if hidden else deep}

    _, found = attributes({"secret": deep}, path("secret"), other={"copy": "abcd"})
    assert found == {"copy": MASK if hidden else "abcd"}


def test_secret_with_the_prefix_of_another_is_masked() -> None:
    values = {"a": "secret-9", "b": "secret-9-longer"}
    other = {"x": "my secret-9-longer", "y": "a secret-9", "z": "secret- 9-longer"}

    _, found = attributes(values, path("a"), path("b"), other=other)

    assert found == {"x": MASK, "y": MASK, "z": "secret- 9-longer"}


def test_outputs_are_masked() -> None:
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
    marked = {"reason": "MARKED_SENSITIVE", "output": None, "attribute": None}
    contains = {
        "reason": "CONTAINS_SENSITIVE_VALUE", "output": None, "attribute": "thing.a.password",
    }  # fmt: skip
    assert shown_outputs(document) == [
        {"name": "copy", "value": [MASK], "type": MASK, "sensitive": False, "hidden": contains},
        {"name": "object", "value": MASK, "type": MASK, "sensitive": True, "hidden": marked},
        {"name": "open", "value": {"a": 1}, "type": kind, "sensitive": False, "hidden": None},
        {"name": "text", "value": MASK, "type": "string", "sensitive": True, "hidden": marked},
    ]
    assert shown_outputs(document, hide=False)[1] == {
        "name": "object",
        "value": {"k": "v"},
        "type": ["object", {"k": "string"}],
        "sensitive": True,
        "hidden": None,
    }


def test_a_sensitive_output_is_hidden_in_resources() -> None:
    document = state(
        resource("a", instance({"url": "postgres://u:correct-horse@db"})),
        outputs={"password": {"value": "correct-horse", "type": "string", "sensitive": True}},
    )

    (item,) = shown(document)

    assert item["attributes"] == {"url": MASK}


def test_with_the_scope_values_are_as_they_were_written() -> None:
    text = state(resource("a", instance({"n": 0}, path("n")))).replace(
        b'"n": 0', b'"n":  0.1234567890123456789012345'
    )
    page = contents.resources(sealing.compress(text), start=0, size=1, hide=False)

    assert b'{"n":  0.1234567890123456789012345}' in bytes(page.items)


def test_secrets_that_are_added_later_count() -> None:
    secrets = Secrets(Effort(0))
    secrets.add("first-secret", MarkedPlace("a"))
    assert secrets.hides(["the first-secret"])

    secrets.add("second-secret", MarkedPlace("b"))

    assert secrets.hides(["the second-secret"])


LONG = 'p&ss/w<rd "quoted" + \\slash é\U0001f600 100%'
#: All of its parts differ; its middle, which is searched, has 96 characters.
NUMBERED = "".join(f"-{number:03}" for number in range(250))


@pytest.mark.parametrize(
    ("secret", "written"),
    [
        ("p&ss<word>", r"x p\u0026ss\u003cword\u003e y"),
        ("p&ss<word>", r"x p\u0026ss\u003Cword\u003E y"),
        ("a/secret/b", r"a\/secret\/b"),
        ("pass&word", "user=pass&amp;word;"),
        ("it's secret", "it&#39;s secret"),
        ("two words", "q=two+words&r=1"),
        ("two words", "q=two%20words&r=1"),
        ("p&ss/wörd", "p%26ss%2fw%c3%b6rd"),
        ("p&ss/wörd", "p%26ss%2Fw%C3%B6rd"),
        ("p&ss/word", "%2570%2526ss%252fword"),
        ("hunter2hunter2", "%68unter2hunter2"),
        ("hunter2", "psql 'postgres://u:hunter2@h/d'"),
        ("hunter2", b"hunter2".hex()),
        ("a\tb-secret", json.dumps("a\tb-secret")),
        (LONG, json.dumps(LONG)),
        (LONG, json.dumps(json.dumps({"deep": json.dumps([LONG])}))),
        (LONG, json.dumps(LONG, ensure_ascii=False)),
        (LONG, quote(LONG)),
        (LONG, quote_plus(LONG)),
        (LONG, quote(json.dumps(LONG), safe="")),
        (LONG, json.dumps({"url": quote_plus(LONG)})),
        *[("hunter2", base64.b64encode(b"x" * n + b"hunter2 y").decode()) for n in range(6)],
        *[(LONG, base64.urlsafe_b64encode(b"x" * n + LONG.encode()).decode()) for n in range(3)],
        ("a" * 500 + "b" * 500, "a" * 100 + "b" * 100),
        (NUMBERED, NUMBERED[452:548]),
        ("first line\nsecond line\n", "second line"),
        ("first line\r\nsecond line", "  - first line"),
        (["line one", "line two"], "line one\nline two"),
        ('{"password": "correct-horse", "port": 54321}', "correct-horse"),
        ('{"password": "correct-horse", "pin": 654321}', 654321),
        ("abcd", '{"pin": "abcd"}'),
        (1234, '{"pin": 1234}'),
        (1234, '["1.234e3"]'),
        ("back\\slash-secret", "back\\slash-secret"),
        ("100%25-secret", "100%25-secret"),
        ("nancy-secret", "\\nancy-secret"),
        ("41-secret", "%41-secret"),
        ("secret" * 3, "secret" * 2000 + "x"),
    ],
)  # fmt: skip
def test_other_encodings_of_a_text_are_masked(secret: Any, written: Any) -> None:
    values = {"here": written, "there": [{"a": written}], "open": "nothing of it"}

    _, found = attributes({"secret": secret}, path("secret"), other=values)

    assert found == {"here": MASK, "there": [{"a": MASK}], "open": "nothing of it"}


@pytest.mark.parametrize(
    ("secret", "elsewhere"),
    [
        ("1234", "1234.0"), ("1234", "1.234e3"), ("1234", "12340e-1"), ("1234", "1.234E+3"),
        ("1234.0", "1234"), ("0.00015", "1.5e-4"), ("1.5e-4", "0.00015"), ("10e-1000", "1e-999"),
        ("12345678901234567890123", "1.2345678901234567890123e22"), ("1e30", "1" + "0" * 30),
        ("-1234", "-1.234e3"),
    ],
)  # fmt: skip
def test_other_formats_of_a_number_are_masked(secret: str, elsewhere: str) -> None:
    document = state(
        resource("a", instance({"secret": "S"}, path("secret"))),
        resource("b", instance({"number": "N", "text": elsewhere, "other": 12})),
    )
    document = document.replace(b'"S"', secret.encode()).replace(b'"N"', elsewhere.encode())

    assert shown(document)[1]["attributes"] == {"number": MASK, "text": MASK, "other": 12}


def test_a_path_that_names_a_secret_key_is_shown_as_all_paths_are() -> None:
    (item,) = shown(state(resource("a", instance({"m": {"k": "x"}}, path("m", "[k")))))

    assert item["sensitive_attributes"] == ["m.k"]


def test_deeply_escaped_text_is_masked() -> None:
    escaped = "%" + "25" * 50 + "41"

    _, found = attributes({"secret": "some-secret"}, path("secret"), other={"x": escaped})

    assert found == {"x": MASK}


def test_huge_number_is_masked() -> None:
    """Terraform cannot read it either."""
    document = state(resource("a", instance({"n": 0}))).replace(
        b'"n": 0', b'"n": 1e99999999999999999999'
    )

    with pytest.raises(StateFormatUnsupported, match="out of range"):
        shown(document)
    assert b"1e99999999999999999999" in document
    assert shown_raw(document)


def shown_raw(document: bytes) -> bool:
    """Return whether a caller with access to secrets sees the number as written."""
    page = contents.resources(sealing.compress(document), start=0, size=1, hide=False)
    return b"1e99999999999999999999" in bytes(page.items)


_scalar = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
_json = st.recursive(
    _scalar,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


def looks_like_a_password(text: str) -> bool:
    return reach(text, Name.SECRET, is_member=False) is Reach.CONTAINING


@given(
    secret=st.text(min_size=8, max_size=12).filter(looks_like_a_password),
    around=_json,
    before=st.text(max_size=5),
)
def test_long_secret_is_never_revealed(secret: str, around: Any, before: str) -> None:
    """Wherever it appears, in values and in the keys of maps."""
    values = {
        "password": secret,
        "copy": {"deep": [around, secret, {before + secret: 1}]},
        "note": f"{before}{secret}",
    }

    (item,) = shown(state(resource("a", instance(values, path("password")))))

    assert item["attributes"]["password"] == item["attributes"]["note"] == MASK
    assert item["attributes"]["copy"]["deep"][1:] == [MASK, MASK]
