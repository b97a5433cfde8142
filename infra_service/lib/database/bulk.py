"""Write many rows of a table with few statements. Only this module uses COPY.

``bulk_create`` compiles each statement during the transaction, which takes half a minute for
100,000 workloads. This module prepares the values before the transaction begins. PostgreSQL
receives new rows through COPY, which costs the server a fifth less than INSERT, and other rows as
JSON text, which takes this process a tenth of the time of arrays. SQLite receives rows one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import msgspec
from django.db import connection
from django.db.models import (
    BinaryField,
    CharField,
    DateTimeField,
    Field,
    IntegerField,
    JSONField,
    UUIDField,
)

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator

    from django.db.models import Model

#: A row from ``Writer.new_row``.
NewRow: TypeAlias = str | Sequence[Any]

_PLAIN: Final = (CharField, IntegerField)
# The escapes of characters that end a value or a row in COPY, and the null value.
_ESCAPES: Final = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
_NULL: Final = r"\N"
# The maximum number of rows per statement on PostgreSQL, which limits its duration.
_BATCH: Final = 5000


class Writer:
    """A writer of columns of a model's table. ``columns`` begins with the key."""

    def __init__(self, model: type[Model], columns: Sequence[str]) -> None:
        fields = {field.name: field for field in model._meta.concrete_fields}
        self._fields = [fields[name] for name in columns]
        self._columns = [str(field.get_attname_column()[1]) for field in self._fields]
        self._table = model._meta.db_table
        self._documents = [at for at, f in enumerate(self._fields) if isinstance(f, JSONField)]
        self._uuids = [at for at, f in enumerate(self._fields) if _is_uuid(f) and not f.null]
        self._binaries = [at for at, f in enumerate(self._fields) if isinstance(f, BinaryField)]
        self._moments = [at for at, f in enumerate(self._fields) if isinstance(f, DateTimeField)]
        self._line = "\t".join(["%s"] * len(columns))

    @cached_property
    def _is_postgresql(self) -> bool:
        # Cached, because the access to Django's connection takes as long as the rest of a row.
        return connection.vendor == "postgresql"

    def prepare(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return the values of a row in the form that the database accepts."""
        if self._is_postgresql:
            return values
        row = list(values)
        for at, field in enumerate(self._fields):
            # Text and numbers do not require a slow conversion.
            if isinstance(field, JSONField):
                row[at] = _json(row[at])
            elif not isinstance(field, _PLAIN):
                row[at] = field.get_db_prep_save(row[at], connection)
        return row

    def new_row(self, values: Sequence[Any]) -> NewRow:
        """Return a row to insert: a line of COPY text for PostgreSQL, or the values.

        A report may contain 100,000 rows, and the garbage collector traverses values but not text.
        """
        if not self._is_postgresql:
            return self.prepare(values)
        row = list(values)
        for at in self._uuids:
            row[at] = row[at].hex
        for at in self._documents:
            row[at] = _json(row[at])
        for at in self._binaries:
            row[at] = None if row[at] is None else rf"\x{bytes(row[at]).hex()}"
        for at in self._moments:
            row[at] = _written(row[at])
        unknown = row.count(None)
        line = self._line % tuple([_NULL if v is None else v for v in row] if unknown else row)
        # Few rows require escapes. Checking each value separately would take longer.
        if (
            line.count("\\") != unknown
            or line.count("\t") >= len(row)
            or "\n" in line
            or "\r" in line
        ):
            return self._line % tuple(map(_escaped, row))
        return line

    def insert(self, rows: Iterable[NewRow]) -> None:
        """Insert the results of ``new_row``. The keys must be new."""
        if self._is_postgresql:
            self._copy(cast("Iterable[str]", rows))
        else:
            self._insert(rows)

    def update(self, rows: Iterable[Sequence[Any]], **scope: Any) -> None:
        """Update the rows with the key in the first column.

        All rows have the values in ``scope``. With the distribution column, Citus needs only one
        worker.
        """
        key, *names = map(_quoted, self._columns)
        table = _quoted(self._table)
        if self._is_postgresql:
            changes = ", ".join(f"{name} = given.{name}" for name in names)
            given = f"FROM {self._given()} WHERE {table}.{key} = given.{key}"
            self._execute(f"UPDATE {table} SET {changes} {given}", rows, **scope)  # noqa: S608 - columns' names
        else:
            changes = ", ".join(f"{name} = %s" for name in names)
            self._execute_each(
                f"UPDATE {table} SET {changes} WHERE {key} = %s",  # noqa: S608 - columns' names
                [[*values, key] for key, *values in rows],
            )

    def delete(self, rows: Iterable[Sequence[Any]], **scope: Any) -> None:
        """Delete the rows that match the given values of all columns. See ``update``."""
        names, table = list(map(_quoted, self._columns)), _quoted(self._table)
        if self._is_postgresql:
            same = " AND ".join(f"{table}.{name} = given.{name}" for name in names)
            self._execute(f"DELETE FROM {table} USING {self._given()} WHERE {same}", rows, **scope)  # noqa: S608 - columns' names
        else:
            same = " AND ".join(f"{name} = %s" for name in names)
            self._execute_each(f"DELETE FROM {table} WHERE {same}", rows)  # noqa: S608 - columns' names

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        """Add the last value to the row with the key in the other columns, or insert the row.

        The keys in ``rows`` must be distinct.
        """
        *key, number = map(_quoted, self._columns)
        sums = f"{number} = {_quoted(self._table)}.{number} + excluded.{number}"
        self._insert(rows, f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {sums}")

    def subtract(self, rows: Sequence[Sequence[Any]]) -> None:
        """Subtract the last value from the row with the key, and delete rows that reach zero."""
        *key, number = map(_quoted, self._columns)
        table = _quoted(self._table)
        if self._is_postgresql:
            given = self._given()
            same = " AND ".join(f"{table}.{name} = given.{name}" for name in key)
            self._execute(
                f"DELETE FROM {table} USING {given} "  # noqa: S608 - columns' names
                f"WHERE {same} AND {table}.{number} <= given.{number}",
                rows,
            )
            self._execute(
                f"UPDATE {table} SET {number} = {table}.{number} - given.{number} "  # noqa: S608 - columns' names
                f"FROM {given} WHERE {same}",
                rows,
            )
        else:
            same = " AND ".join(f"{name} = %s" for name in key)
            self._execute_each(f"DELETE FROM {table} WHERE {same} AND {number} <= %s", rows)  # noqa: S608 - columns' names
            self._execute_each(
                f"UPDATE {table} SET {number} = {number} - %s WHERE {same}",  # noqa: S608 - columns' names
                [[count, *values] for *values, count in rows],
            )

    def _insert(self, rows: Iterable[Sequence[Any]], or_else: str = "") -> None:
        """Insert rows. ``or_else`` is the SQL for conflicts."""
        into = f"INSERT INTO {self._into()}"
        if self._is_postgresql:
            self._execute(f"{into} SELECT * FROM {self._given()}{or_else}", rows)  # noqa: S608 - columns' names
        else:
            marks = ", ".join(["%s"] * len(self._fields))
            self._execute_each(f"{into} VALUES ({marks}){or_else}", rows)

    def _copy(self, lines: Iterable[str]) -> None:
        statement = f"COPY {self._into()} FROM STDIN"
        for batch in batches(lines, _BATCH):
            # Django's cursor does not convert the errors of a COPY.
            with (
                connection.cursor() as cursor,
                connection.wrap_database_errors,
                cursor.copy(statement) as copy,
            ):
                copy.write("\n".join([*batch, ""]))

    def _into(self) -> str:
        return f"{_quoted(self._table)} ({', '.join(map(_quoted, self._columns))})"

    def _given(self) -> str:
        """Return a table of the rows for PostgreSQL, with the same SQL for any number of rows."""
        columns = zip(map(_quoted, self._columns), map(_type, self._fields), strict=True)
        typed = ", ".join(f"{name} {kind}" for name, kind in columns)
        return f"json_to_recordset(%s::json) AS given ({typed})"

    def _execute(self, sql: str, rows: Iterable[Sequence[Any]], **scope: Any) -> None:
        sql += "".join(f" AND {_quoted(self._table)}.{_quoted(name)} = %s" for name in scope)
        with connection.cursor() as cursor:
            for batch in batches(rows, _BATCH):
                named = [dict(zip(self._columns, row, strict=True)) for row in batch]
                cursor.execute(sql, [msgspec.json.encode(named).decode(), *scope.values()])

    def _execute_each(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        if every := list(rows):
            with connection.cursor() as cursor:
                cursor.executemany(sql, every)


def batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield the items in batches."""
    rest = iter(items)
    while batch := list(itertools.islice(rest, size)):
        yield batch


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


# All rows of a report share one or two timestamps.
@lru_cache(maxsize=8)
def _written(moment: dt.datetime | None) -> str | None:
    return None if moment is None else str(moment)


def _escaped(value: Any) -> Any:
    """Return a value in COPY's text format."""
    if value is None:
        return _NULL
    return value.translate(_ESCAPES) if isinstance(value, str) else value


def _is_uuid(field: Field[Any, Any]) -> bool:
    """Return whether the column, or the column that it refers to, is a UUID."""
    return isinstance(getattr(field, "target_field", field), UUIDField)


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)


def _type(field: Field[Any, Any]) -> str | None:
    # varchar(n) would truncate long values instead of rejecting them.
    return "text" if isinstance(field, CharField) else field.db_type(connection)
