"""Text in answers: bounded, and without characters that a person cannot see."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra_service.mcp.answers import bounded, cleaned


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\tb\nc\u2028d\u00a0e", "a b c d e"),
        ("a\x00\x1b[31mb", "a[31mb"),
        ("user\u202egnp.exe\u2066x\u2069", "usergnp.exex"),
        ("zero\u200b\u200d\ufeffwidth", "zerowidth"),
        ("tag" + "".join(chr(0xE0000 + ord(c)) for c in "ignore"), "tag"),
        ("sel\ufe0f\U000e0101", "sel"),
        ("private\ue000\U000f0000", "private"),
        ("naïve 日本語 🚀", "naïve 日本語 🚀"),
        ("x" * 301, "x" * 300 + "…"),
    ],
)
def test_examples(text: str, shown: str) -> None:
    assert cleaned(text) == shown


@given(st.text(max_size=400))
def test_no_invisible_character_remains(text: str) -> None:
    for character in cleaned(text):
        assert character == "…" or unicodedata.category(character)[0] != "C"
        assert character == " " or not character.isspace()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=500),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(), inner, max_size=40),
    max_leaves=60,
)


@pytest.mark.slow
@given(VALUES)
def test_an_item_is_bounded(value: Any) -> None:
    assert len(bounded(value)) <= 3_000


def test_null_fields_are_left_out() -> None:
    assert bounded({"a": None, "b": [None, 1]}) == b'{"b":[null,1]}'
