"""Expressions select the same rows in the database as in Python."""

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from filterlang.compiler import compile_filter
from filterlang.grammar import MAX_LENGTH
from tests.filterlang.expressions import expressions, terms
from tests.filterlang.rows import Row, RowFilters
from tests.filterlang.values import rows as any_row

in_the_database = settings(
    max_examples=60,
    # Without shrinking, which takes minutes here; a failure names its text.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def selected(text):
    return set(Row.objects.filter(compile_filter(RowFilters, text)).values_list("pk", flat=True))


@pytest.mark.long
@pytest.mark.parametrize("expression", [terms, expressions], ids=["terms", "expressions"])
@in_the_database
@given(data=st.data())
def test_the_database_and_python_agree(rows, data, expression):
    rows.all().delete()
    stored = rows.bulk_create(data.draw(st.lists(any_row, min_size=5, max_size=20)))
    for text, selects in data.draw(st.lists(expression, min_size=3, max_size=10)):
        assume(len(text) <= MAX_LENGTH)
        assert selected(text) == {row.pk for row in stored if selects(row)}, text
