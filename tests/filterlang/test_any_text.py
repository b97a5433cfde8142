"""Whatever the text is, the answer is a condition or a refusal with a position inside it."""

import re

import pytest
from django.db.models import Q
from hypothesis import given, settings
from hypothesis import strategies as st

from filterlang.compiler import compile_filter
from filterlang.errors import Code, FilterError
from filterlang.fieldtypes import ORDER, PRESENCE, TEXT
from filterlang.grammar import MAX_LENGTH
from tests.filterlang.expressions import expressions
from tests.filterlang.rows import RowFilters
from tests.filterlang.values import TEXTS

fragments = st.sampled_from(
    [
        *ORDER,
        *TEXT,
        *PRESENCE,
        *TEXTS,
        *(
            "field['name']",
            "labels['app']",
            "field[",
            "labels[",
            "]",
            "(",
            ")",
            ",",
            "'",
            '"',
            "\\",
        ),
        *(
            "NOT",
            "AND",
            "OR",
            "NULL",
            "IS",
            "true",
            "10",
            "-",
            "==",
            "&&",
            "\0",
            "\ud800",
            "\u017f",
            "\u212a",
        ),
        *("'x'", '"x"', "''", "\\'", "='x'", " ", " AND ", " OR ", "NOT ", "\t", "\xa0", "\u2028"),
    ]
)
soups = st.lists(fragments, max_size=40).map("".join)
characters = st.text(st.characters(categories=["L", "N", "P", "S", "Z", "C", "Cs"]), max_size=1100)


@st.composite
def broken(draw):
    """An expression with a piece cut out, put in, doubled or swapped."""
    text = draw(expressions).text
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    middle = draw(fragments | st.just("") | st.just(text[start:end] * 2) | characters)
    return text[:start] + middle + text[end:]


def verdict(text):
    """Return the error of the text, if any."""
    try:
        assert isinstance(compile_filter(RowFilters, text), Q)
    except FilterError as error:
        return error
    return None


@pytest.mark.long
@settings(max_examples=500)
@given(characters | soups | broken())
def test_an_answer_or_a_refusal(text):
    if error := verdict(text):
        assert 0 <= error.position <= len(text)
        assert error.code in Code
        assert error.message
        character = text[error.position : error.position + 1]
        if error.code == Code.CHARACTER:
            assert not re.fullmatch("[!-_a-~]", character)
        else:
            assert not re.fullmatch("[\0\ud800-\udfff]", character) or len(text) > MAX_LENGTH


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ("(" * 100_000, "too_long", 1024),
        (")" * 100_000, "too_long", 1024),
        ("(" * 1024, "syntax", 1024),
        (")" * 1024, "syntax", 0),
        ("NOT " * 256, "syntax", 1024),
        ("NOT(" * 256, "syntax", 1024),
        ("'" * 1024, "syntax", 0),
        ("field['" + "'" * 1016, "syntax", 6),
        ("field['" + "\\'" * 508, "syntax", 6),
        ("field['" + "\\" * 1017, "syntax", 6),
        ("field['" + "''\\'" * 254, "syntax", 6),
        ("field['name'] = '" + "x" * 1000, "syntax", 16),
        ("field['name'] = \"" + "'" * 1000, "syntax", 16),
        ("field['name'] = " + "9" * 1008, "type", 16),
        ("field['size_bytes'] = " + "9" * 1002, "type", 22),
        ("field['size_bytes'] = " + "9" * 1001 + "x", "syntax", 22),
        ("field['size_bytes'] IN (" + "1," * 500, "syntax", 1024),
        ("field['name'] " + "=" * 1000, "syntax", 14),
        ("field['name'] " + "!=" * 500, "syntax", 14),
        ("field['name'] = 'x' " + "AND " * 251, "syntax", 24),
        ("field['" + "n" * 1000 + "']=1", "unknown_field", 6),
        ("field['kind']='" + "D" * 1000 + "'", "type", 14),
        (" " * 1023 + "x", "syntax", 1023),
        ("is " * 341, "syntax", 0),
        ("field['name'] is" + " " * 1000, "syntax", 14),
        ("field['name'] not" + " " * 1000, "syntax", 14),
        ("😀" * 1024, "syntax", 0),
        ("field['name'] = '😀' x", "syntax", 20),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else value,
)
def test_hostile_texts_are_matched_literally(text, code, position):
    error = verdict(text)
    assert (error.code, error.position) == (code, position)
