"""The SQL of each lookup, on each database, without a database."""

import pytest
from django.db import DEFAULT_DB_ALIAS
from django.db.backends.postgresql.base import DatabaseWrapper as PostgreSQL
from django.db.backends.sqlite3.base import DatabaseWrapper as SQLite
from django.db.models import Q
from psycopg.types.json import Jsonb

from filterlang.lookups import Piece
from tests.filterlang.rows import Row

NAME = '"filterlang_rows_row"."name"'
LABELS = '"filterlang_rows_row"."labels"'
EACH = (
    f"EXISTS(SELECT 1 FROM JSON_EACH({LABELS}) AS filterlang_label WHERE filterlang_label.key = %s"
)


def where(wrapper, path, value):
    connection = wrapper({"TIME_ZONE": None, "OPTIONS": {}}, alias=DEFAULT_DB_ALIAS)
    query = Row.objects.filter(Q((path, value))).query
    sql, params = query.get_compiler(connection=connection).as_sql()
    return sql.split(" WHERE ", 1)[1], [
        param.obj if isinstance(param, Jsonb) else param for param in params
    ]


NASTY = "%_\\*?[]"


@pytest.mark.parametrize(
    ("piece", "like", "glob"),
    [
        (Piece("Web"), "%Web%", "*Web*"),
        (Piece("Web", at_start=True), "Web%", "Web*"),
        (Piece("Web", at_end=True), "%Web", "*Web"),
        (Piece(NASTY), r"%\%\_\\*?[]%", "*%_\\[*][?][[]]*"),
        (Piece(""), "%%", "**"),
    ],
)
def test_part_of_a_text_is_matched(piece, like, glob):
    path = "name__filterlang_matches"
    assert where(PostgreSQL, path, piece) == (f"{NAME} LIKE %s", [like])
    assert where(SQLite, path, piece) == (f"{NAME} GLOB %s", [glob])


def test_part_of_a_text_is_matched_in_any_case():
    path, piece = "name__filterlang_matches", Piece("WeÉ%", ignore_case=True)
    assert where(PostgreSQL, path, piece) == (f'LOWER({NAME} COLLATE "C") LIKE %s', [r"%weÉ\%%"])
    assert where(SQLite, path, piece) == (rf"{NAME} LIKE %s ESCAPE '\'", [r"%WeÉ\%%"])


def test_a_label_equals():
    path = "labels__filterlang_label_equals"
    assert where(PostgreSQL, path, {"a'b": "x"}) == (f"{LABELS} @> %s", [{"a'b": "x"}])
    assert where(SQLite, path, {"a'b": "x"}) == (
        f"{EACH} AND filterlang_label.value = %s)",
        ["a'b", "x"],
    )


def test_label_in_a_list_is_matched():
    path, value = "labels__filterlang_label_in", {"a": ("x", "y")}
    sql, (pairs,) = where(PostgreSQL, path, value)
    assert sql == f"{LABELS} @> ANY(%s)"
    assert [pair.obj for pair in pairs] == [{"a": "x"}, {"a": "y"}]
    assert where(SQLite, path, value) == (
        f"{EACH} AND filterlang_label.value IN (%s, %s))",
        ["a", "x", "y"],
    )


def test_a_label_exists():
    path = "labels__filterlang_label_exists"
    assert where(PostgreSQL, path, "a.b") == (f"{LABELS} ? %s", ["a.b"])
    assert where(SQLite, path, "a.b") == (f"{EACH})", ["a.b"])


def test_part_of_a_label_is_matched():
    path, piece = "labels__filterlang_label_matches", Piece("x", at_start=True)
    assert where(PostgreSQL, path, {"0": piece}) == (
        f"COALESCE(({LABELS} ->> %s) LIKE %s, FALSE)",
        ["0", "x%"],
    )
    assert where(SQLite, path, {"0": piece}) == (
        f"{EACH} AND filterlang_label.value GLOB %s)",
        ["0", "x*"],
    )


def test_part_of_a_label_is_matched_in_any_case():
    path, piece = "labels__filterlang_label_matches", Piece("X", ignore_case=True)
    assert where(PostgreSQL, path, {"0": piece}) == (
        f'COALESCE(LOWER(({LABELS} ->> %s) COLLATE "C") LIKE %s, FALSE)',
        ["0", "%x%"],
    )
    assert where(SQLite, path, {"0": piece}) == (
        rf"{EACH} AND filterlang_label.value LIKE %s ESCAPE '\')",
        ["0", "%X%"],
    )
