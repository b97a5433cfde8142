"""Lookups with the same meaning on PostgreSQL and SQLite, with the SQL for each database.

Django's own lookups differ between the databases. SQLite's LIKE ignores case, its JSON functions
lack a containment test, and its JSON paths misread keys that contain quotes or consist only of
digits. Names and texts from users are always SQL parameters.
"""

from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import CharField, JSONField, Lookup, TextField
from django.db.models.fields.json import DataContains, HasKey
from django.db.models.sql.compiler import SQLCompiler

SQL = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Piece:
    """A literal part of a text and its position. `%`, `_` and `*` have no special meaning."""

    text: str
    at_start: bool = False
    at_end: bool = False
    ignore_case: bool = False

    def postgres(self, value: str, connection: BaseDatabaseWrapper) -> SQL:
        """Return the condition on the SQL expression ``value``."""
        text = connection.ops.prep_for_like_query(self.text)
        if self.ignore_case:
            # "C" folds only A to Z, as SQLite does. Other collations depend on the server.
            value, text = f'LOWER({value} COLLATE "C")', text.encode().lower().decode()
        return f"{value} LIKE %s", (self._surround(text, "%"),)

    def sqlite(self, value: str, connection: BaseDatabaseWrapper) -> SQL:
        """Return the condition on the SQL expression ``value``."""
        if self.ignore_case:
            text = connection.ops.prep_for_like_query(self.text)
            return rf"{value} LIKE %s ESCAPE '\'", (self._surround(text, "%"),)
        text = self.text.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]")
        return f"{value} GLOB %s", (self._surround(text, "*"),)

    def _surround(self, text: str, wildcard: str) -> str:
        return f"{'' if self.at_start else wildcard}{text}{'' if self.at_end else wildcard}"


@CharField.register_lookup
@TextField.register_lookup
class TextMatches(Lookup):
    """A lookup for a column that contains a ``Piece``."""

    lookup_name = "filterlang_matches"
    prepare_rhs = False

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> SQL:
        """Return the SQL for PostgreSQL: LIKE, which can use an index on the column."""
        lhs, params = self.process_lhs(compiler, connection)
        condition, pattern = self.rhs.postgres(lhs, connection)
        return condition, (*params, *pattern)

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> SQL:
        """Return the SQL for SQLite: GLOB, which can use an index for prefixes."""
        lhs, params = self.process_lhs(compiler, connection)
        condition, pattern = self.rhs.sqlite(lhs, connection)
        return condition, (*params, *pattern)


def _any_label(labels: str, condition: str = "") -> str:
    # JSON_EACH returns keys and values as plain text, regardless of their content.
    return (
        f"EXISTS(SELECT 1 FROM JSON_EACH({labels}) AS filterlang_label "  # noqa: S608  # a column
        f"WHERE filterlang_label.key = %s{condition})"
    )


@JSONField.register_lookup
class LabelEquals(DataContains):
    """A lookup for labels that contain ``{key: value}``, for which PostgreSQL uses a GIN index."""

    lookup_name = "filterlang_label_equals"

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> SQL:
        """Return the SQL for SQLite: find the pair."""
        lhs, params = self.process_lhs(compiler, connection)
        ((key, value),) = self.rhs.items()
        return _any_label(lhs, " AND filterlang_label.value = %s"), (*params, key, value)


@JSONField.register_lookup
class LabelIn(Lookup):
    """A lookup with ``{key: values}`` for labels in which the key has one of the values.

    PostgreSQL uses a GIN index. An OR of hundreds of lookups would take Django 10 ms, and produce
    different SQL for each count.
    """

    lookup_name = "filterlang_label_in"
    prepare_rhs = False

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Any:
        """Return the SQL for PostgreSQL: containment of any pair."""
        lhs, params = self.process_lhs(compiler, connection)
        ((key, values),) = self.rhs.items()
        pairs = [connection.ops.adapt_json_value({key: value}, None) for value in values]
        return f"{lhs} @> ANY(%s)", (*params, pairs)

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> SQL:
        """Return the SQL for SQLite: find the key and compare its value."""
        lhs, params = self.process_lhs(compiler, connection)
        ((key, values),) = self.rhs.items()
        marks = ", ".join(["%s"] * len(values))
        return _any_label(lhs, f" AND filterlang_label.value IN ({marks})"), (*params, key, *values)


@JSONField.register_lookup
class LabelExists(HasKey):
    """A lookup for labels with a key."""

    lookup_name = "filterlang_label_exists"

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> SQL:
        """Return the SQL for SQLite: find the key."""
        lhs, params = self.process_lhs(compiler, connection)
        return _any_label(lhs), (*params, self.rhs)


@JSONField.register_lookup
class LabelMatches(Lookup):
    """A lookup for ``{key: Piece}``: labels with a value that contains the piece.

    Without the key, the result is false, not NULL.
    """

    lookup_name = "filterlang_label_matches"
    prepare_rhs = False

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> SQL:
        """Return the SQL for PostgreSQL: LIKE on the value as text."""
        lhs, params = self.process_lhs(compiler, connection)
        ((key, piece),) = self.rhs.items()
        condition, pattern = piece.postgres(f"({lhs} ->> %s)", connection)
        return f"COALESCE({condition}, FALSE)", (*params, key, *pattern)

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> SQL:
        """Return the SQL for SQLite: find the key and compare its value."""
        lhs, params = self.process_lhs(compiler, connection)
        ((key, piece),) = self.rhs.items()
        condition, pattern = piece.sqlite("filterlang_label.value", connection)
        return _any_label(lhs, f" AND {condition}"), (*params, key, *pattern)
