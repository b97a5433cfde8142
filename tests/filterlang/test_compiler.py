from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import Case, Q, Value, When

from filterlang.compiler import compile_filter
from filterlang.errors import FilterError
from filterlang.filters import EnumFilter
from filterlang.lookups import Piece
from tests.filterlang.rows import Row, RowFilters

A = Q(("kind__exact", "Deployment"))
B = Q(("size__exact", 1))
LABEL = Q(("labels__filterlang_label_equals", {"a": "x"}))


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("", Q()),
        ("field['kind'] = 'Deployment'", A),
        ("field['kind'] != 'Deployment'", ~A),
        ("NOT field['kind'] = 'Deployment'", ~A),
        ("NOT field['kind'] != 'Deployment'", ~~A),
        ("field['kind'] = 'Deployment' AND field['size_bytes'] = '1'", Q(A, B)),
        ("field['kind'] = 'Deployment' OR field['size_bytes'] = 1", Q(A, B, _connector=Q.OR)),
        ("field['size_bytes'] < 1", Q(("size__lt", 1))),
        ("field['size_bytes'] <= 1", Q(("size__lte", 1))),
        ("field['size_bytes'] > 1", Q(("size__gt", 1))),
        ("field['size_bytes'] >= 1", Q(("size__gte", 1))),
        ("field['size_bytes'] BETWEEN 1 AND '2'", Q(("size__range", [1, 2]))),
        ("field['size_bytes'] IN (1, 2)", Q(("size__in", [1, 2]))),
        ("field['size_bytes'] NOT IN (1)", ~Q(("size__in", [1]))),
        (
            "field['id'] = '00000000-0000-0000-0000-00000000000A'",
            Q(("uid__exact", UUID(int=10))),
        ),
        ("field['locked'] = true", Q(("lock_id__isnull", False))),
        ("field['locked'] = 'false'", Q(("lock_id__isnull", True))),
        ("field['paused'] != true", ~Q(("paused__exact", True))),
        ("field['name'] ~= 'x'", Q(("name__filterlang_matches", Piece("x", ignore_case=True)))),
        ("field['name'] CONTAINS 'x'", Q(("name__filterlang_matches", Piece("x")))),
        (
            "field['name'] STARTS_WITH 'x'",
            Q(("name__filterlang_matches", Piece("x", at_start=True))),
        ),
        ("field['name'] ENDS_WITH 'x'", Q(("name__filterlang_matches", Piece("x", at_end=True)))),
        ("field['note'] IS NULL", Q(("note__isnull", True))),
        ("field['note'] IS NOT NULL", Q(("note__isnull", False))),
        ("field['note'] EXISTS", Q(("note__isnull", False))),
        ("labels['a'] = 'x'", LABEL),
        ("labels['a'] != 'x'", ~LABEL),
        (
            "labels['a'] IN ('x', 'y')",
            Q(("labels__filterlang_label_in", {"a": ("x", "y")})),
        ),
        ("labels['a'] CONTAINS 'x'", Q(("labels__filterlang_label_matches", {"a": Piece("x")}))),
        ("labels['a'] EXISTS", Q(("labels__filterlang_label_exists", "a"))),
        ("labels['a'] IS NOT NULL", Q(("labels__filterlang_label_exists", "a"))),
        ("labels['a'] IS NULL", ~Q(("labels__filterlang_label_exists", "a"))),
    ],
)
def test_conditions_are_compiled(text, condition):
    assert compile_filter(RowFilters, text).deconstruct() == condition.deconstruct()


NO_REPLICAS = Q(("replicas__in", []))
NO_MOMENT = Q(("created_at__in", []))
MOMENT = datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC)
NEXT_MOMENT = MOMENT + timedelta(microseconds=1)
LAST_MOMENT = datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("predicate", "condition"),
    [
        ("= 2147483647", Q(("replicas__exact", 2**31 - 1))),
        ("= 2147483648", NO_REPLICAS),
        ("!= 4294967296", ~NO_REPLICAS),
        ("IN (4294967296)", NO_REPLICAS),
        ("IN (-2147483649, 1)", Q(("replicas__in", [1]))),
        ("NOT IN (4294967296, 1)", ~Q(("replicas__in", [1]))),
        ("< 4294967296", Q(("replicas__lte", 2**31 - 1))),
        ("<= 4294967296", Q(("replicas__lte", 2**31 - 1))),
        ("> 4294967296", NO_REPLICAS),
        (">= 4294967296", NO_REPLICAS),
        ("< -4294967296", NO_REPLICAS),
        ("<= -4294967296", NO_REPLICAS),
        ("> -4294967296", Q(("replicas__gte", -(2**31)))),
        (">= -4294967296", Q(("replicas__gte", -(2**31)))),
        ("BETWEEN 0 AND 2147483648", Q(("replicas__range", [0, 2**31 - 1]))),
        ("BETWEEN -4294967296 AND 0", Q(("replicas__range", [-(2**31), 0]))),
        ("BETWEEN 4294967296 AND 4294967297", NO_REPLICAS),
        ("BETWEEN -4294967297 AND -4294967296", NO_REPLICAS),
    ],
)
def test_integers_beyond_the_column_match_correctly(predicate, condition):
    compiled = compile_filter(RowFilters, f"field['replicas'] {predicate}")
    assert compiled.deconstruct() == condition.deconstruct()


@pytest.mark.parametrize(
    ("predicate", "condition"),
    [
        ("= '2026-01-31T12:00:00.000001000Z'", Q(("created_at__exact", MOMENT))),
        ("= '2026-01-31T12:00:00.0000015Z'", NO_MOMENT),
        ("IN ('2026-01-31T12:00:00.0000015Z')", NO_MOMENT),
        ("< '2026-01-31T12:00:00.0000015Z'", Q(("created_at__lte", MOMENT))),
        ("<= '2026-01-31T12:00:00.0000015Z'", Q(("created_at__lte", MOMENT))),
        ("> '2026-01-31T12:00:00.0000015Z'", Q(("created_at__gte", NEXT_MOMENT))),
        (">= '2026-01-31T12:00:00.0000015Z'", Q(("created_at__gte", NEXT_MOMENT))),
        (
            "BETWEEN '2026-01-31T12:00:00.0000005Z' AND '2026-01-31T12:00:00.0000025Z'",
            Q(("created_at__range", [MOMENT, NEXT_MOMENT])),
        ),
        ("< '9999-12-31T23:59:59.9999999Z'", Q(("created_at__lte", LAST_MOMENT))),
        ("> '9999-12-31T23:59:59.9999999Z'", NO_MOMENT),
    ],
)
def test_times_between_two_microseconds_are_compared_exactly(predicate, condition):
    compiled = compile_filter(RowFilters, f"field['created_at'] {predicate}")
    assert compiled.deconstruct() == condition.deconstruct()


def test_a_filter_is_compiled_once_for_each_field_set():
    class Others(RowFilters):
        pass

    text = "field['kind'] = 'Deployment'"
    assert compile_filter(RowFilters, text) is compile_filter(RowFilters, text)
    assert compile_filter(Others, text) is not compile_filter(RowFilters, text)


def test_a_refusal_is_not_remembered():
    for _ in range(2):
        before = compile_filter.cache_info().currsize
        with pytest.raises(FilterError):
            compile_filter(RowFilters, "field['kind'] = 1")
        assert compile_filter.cache_info().currsize == before


@pytest.mark.parametrize(
    "name",
    [
        "kind__exact",
        "_connector",
        "_negated",
        "pk",
        "labels__a",
        "lock_id",
        "kind__contains",
        "uid",
    ],
)
def test_a_path_of_the_orm_is_no_field(name):
    with pytest.raises(FilterError) as caught:
        compile_filter(RowFilters, f"field['{name}'] = 'x'")
    assert caught.value.code == "unknown_field"


@pytest.mark.parametrize("key", ["a__b", "x' OR 1=1 --", '$."a"', "0", "a%s", "%(x)s", "?", ""])
def test_a_label_key_is_a_value(rows, key):
    row = rows.create(name="x", kind="Deployment", labels={key: "v"})
    rows.create(name="y", kind="Deployment", labels={"other": "v"})
    quoted = key.replace("'", "''")
    for condition in ("= 'v'", "CONTAINS 'v'", "EXISTS", "IN ('v', 'w')"):
        text = f"labels['{quoted}'] {condition}"
        assert rows.filter(compile_filter(RowFilters, text)).get() == row


@pytest.mark.both
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("field['note'] != 'x'", {"null", "y"}),
        ("field['note'] NOT IN ('x', 'z')", {"null", "y"}),
        ("NOT field['note'] = 'x'", {"null", "y"}),
        ("NOT (field['note'] = 'x' OR field['note'] CONTAINS 'z')", {"null", "y"}),
        ("NOT NOT field['note'] = 'x'", {"x"}),
        ("labels['a'] != 'x'", {"null", "y"}),
        ("labels['a'] NOT IN ('x')", {"null", "y"}),
        ("NOT labels['a'] ~= 'X'", {"null", "y"}),
        ("labels['a'] IS NULL", {"null"}),
        ("labels['a'] EXISTS", {"x", "y"}),
        ("field['note'] IS NULL", {"null"}),
        ("NOT field['note'] IS NOT NULL", {"null"}),
        ("field['note'] IS NOT NULL", {"x", "y"}),
        ("NOT (field['note'] IS NULL OR field['note'] = 'x')", {"y"}),
        ("field['kind'] = 'Deployment' AND field['kind'] = 'DaemonSet'", set()),
    ],
)
def test_missing_values_are_unequal(rows, text, names):
    rows.create(name="null", kind="Deployment")
    rows.create(name="x", kind="Deployment", note="x", labels={"a": "x"})
    rows.create(name="y", kind="Deployment", note="y", labels={"a": "y"})
    found = rows.filter(compile_filter(RowFilters, text)).values_list("name", flat=True)
    assert set(found) == names


@pytest.mark.both
@pytest.mark.parametrize(
    "text",
    [" OR ".join(["labels['a'] NOT IN ('b','c')"] * 30), "NOT " * 250 + "field['name'] = 'x'"],
)
def test_the_database_takes_long_filters(rows, text):
    assert not rows.filter(compile_filter(RowFilters, text)).exists()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="GIN is PostgreSQL's")
@pytest.mark.parametrize("condition", ["= 'x'", "IN ('x', 'y')", "EXISTS"])
def test_an_index_serves_labels(rows, condition):
    rows.bulk_create(Row(name="n", kind="Deployment", labels={f"k{n}": "v"}) for n in range(2000))
    with connection.cursor() as cursor:
        cursor.execute("CREATE INDEX rows_labels ON filterlang_rows_row USING gin (labels)")
        cursor.execute("ANALYZE filterlang_rows_row")
    plan = rows.filter(compile_filter(RowFilters, f"labels['a'] {condition}")).explain()
    assert "Bitmap Index Scan on rows_labels" in plan
    assert "Seq Scan" not in plan


class WithExpression(RowFilters):
    size_word = EnumFilter(choices=[("small", "small"), ("large", "large")], nullable=True)


@pytest.mark.both
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("= 'small'", {"x"}),
        ("!= 'small'", {"null", "y"}),
        ("NOT IN ('small')", {"null", "y"}),
        ("IS NULL", {"null"}),
        ("EXISTS", {"x", "y"}),
    ],
)
def test_an_expression_that_is_null_is_unequal(rows, text, names):
    for name, size in (("null", None), ("x", 1), ("y", 1000)):
        rows.create(name=name, kind="Deployment", size=size)
    words = Case(When(size__lt=10, then=Value("small")), When(size__gte=10, then=Value("large")))

    condition = compile_filter(WithExpression, f"field['size_word'] {text}")
    found = rows.annotate(size_word=words).filter(condition)
    assert set(found.values_list("name", flat=True)) == names
