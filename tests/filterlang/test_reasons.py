"""The table of errors of the language's specification, row by row, on its own field set."""

import pytest
from django_filters import CharFilter, FilterSet, UUIDFilter

from filterlang.compiler import compile_filter
from filterlang.errors import FilterError
from filterlang.filters import EnumFilter
from tests.filterlang.rows import KINDS


class Workloads(FilterSet):
    component_id = UUIDFilter()
    name = CharFilter()
    kind = EnumFilter(choices=[(kind, kind) for kind in KINDS])


@pytest.mark.parametrize(
    ("text", "code", "position", "message", "suggestion"),
    [
        (
            "name = 'x'",
            "syntax",
            0,
            "expected a term such as field['name'], NOT or '('",
            "write field['name']",
        ),
        ("field['name'] == 'x'", "syntax", 14, "expected an operator", "did you mean = ?"),
        (
            "field['name'] = x",
            "syntax",
            16,
            "expected a quoted value, an integer, true or false",
            "quote the value: 'x'",
        ),
        ("field['name'] = 'x", "syntax", 16, "unterminated quoted value", "close it with '"),
        (
            "field['name'] = 'x' field['kind'] = 'y'",
            "syntax",
            20,
            "expected AND, OR, ')' or the end",
            "put AND or OR between two terms",
        ),
        ("(field['name'] = 'x'", "syntax", 0, "'(' is never closed", ""),
        (
            "field['nam'] = 'x'",
            "unknown_field",
            6,
            "unknown field 'nam'; filterable fields: component_id, name, kind",
            "did you mean 'name'?",
        ),
        ("field['component_id'] = 'not-a-uuid'", "type", 24, "expected a UUID", ""),
        (
            "field['kind'] = 'deployment'",
            "type",
            16,
            "expected one of Deployment, StatefulSet, DaemonSet",
            "did you mean 'Deployment'?",
        ),
        (
            "field['kind'] STARTS_WITH 'D'",
            "operator",
            14,
            "not allowed for field 'kind' (enum)",
            "allowed: =, !=, IN, NOT IN",
        ),
    ],
)
def test_documented_table_matches(text, code, position, message, suggestion):
    with pytest.raises(FilterError) as caught:
        compile_filter(Workloads, text)
    error = caught.value
    assert (error.code, error.position, error.message, error.suggestion) == (
        code,
        position,
        message,
        suggestion,
    )
    assert str(error) == "; ".join(filter(None, (message, suggestion)))
