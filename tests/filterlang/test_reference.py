"""Agreement of docs/reference/filter-language.md with the code."""

import json
import re
from pathlib import Path

import pytest

from filterlang import backend, filters, grammar
from filterlang.compiler import compile_filter
from filterlang.errors import Code, FilterError
from filterlang.fields import field_set
from filterlang.fieldtypes import ORDER, PRESENCE, TEXT
from filterlang.parser import parse
from tests.filterlang.rows import RowFilters, VersionedFilters

PAGE = Path(__file__).parents[2].joinpath("docs/reference/filter-language.md").read_text()


def table(heading):
    """The rows of the first table below a heading, as lists of cells."""
    below = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in below.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def code(cell):
    return re.findall(r"`([^`]+)`", cell)


def test_documented_types_and_operators_match():
    types = {
        field.type.name: list(field.type.operators)
        for field in field_set(VersionedFilters).values()
    }
    assert {kind: code(operators) for kind, operators, _ in table("Types and operators")} == types


def test_every_operator_is_of_some_type():
    types = [set(code(operators)) for _, operators, _ in table("Types and operators")]
    assert set.union(*types) == {*ORDER, *TEXT, *PRESENCE}


def test_documented_keywords_match():
    listed = code(PAGE.split("- Keywords (")[1].split(")")[0])
    operators = {*ORDER, *TEXT, *PRESENCE}
    used = {word for operator in operators for word in operator.split() if word.isidentifier()}
    assert set(listed) == used | {"AND", "OR", "true", "false"}
    shown = set(re.findall(r"\b[A-Z_]{2,}\b", PAGE.split("```")[5]))
    assert shown == used | {"AND", "OR"}


def test_documented_error_codes_match():
    assert [code(cell) for cell, _ in table("Errors")] == [[str(reason)] for reason in Code]


def test_documented_limits_match():
    assert f"at most {grammar.MAX_LENGTH} characters." in PAGE
    assert f"up to {grammar.MAX_DEPTH} levels deep." in PAGE
    assert f"{filters.INT64_MIN} to {filters.INT64_MAX}" in PAGE


@pytest.mark.parametrize(
    "expression",
    [
        *re.findall(r"```\n(field.*)\n```", PAGE),
        *re.findall(r"filter=([^\n\"]+)\"\n", PAGE),
        *[
            expression
            for expression in re.findall(r"`((?:NOT )?(?:field|labels)\['[^`]+)`", PAGE)
            if " == " not in expression and re.search(r"\] \S", expression)
        ],
    ],
)
def test_examples_are_of_the_language(expression):
    assert parse(expression)


def test_documented_error_example_matches():
    (example,) = map(json.loads, re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    (text,) = re.findall(r"For `(.*)`:", PAGE)
    with pytest.raises(FilterError) as caught:
        compile_filter(RowFilters, text)
    error = backend.InvalidFilter(caught.value)
    assert example["error"]["code"] == error.status_code
    assert example["error"]["message"] == error.detail
    (details,) = example["error"]["details"]
    assert (details["reason"], details["metadata"]) == (error.default_code, error.metadata)
