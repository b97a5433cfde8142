"""Compile the statements of the most frequent queries once.

Compiling a queryset takes several times as long as PostgreSQL needs for a lookup by a unique index,
and the SQL is the same for each request. A ``Parameter`` in the queryset represents a value that
varies. Queries are still defined by the ORM's models, fields and conversions.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.models import Expression, Model
from django.db.models.sql import UpdateQuery

from infra_service.lib.database import citus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import Field, QuerySet
    from django.db.models.sql.compiler import SQLCompiler

M = TypeVar("M", bound=Model)


class Parameter(Expression):
    """A named placeholder for a value of the statement."""

    def __init__(self, name: str, output_field: Field[Any, Any]) -> None:
        super().__init__(output_field=output_field)
        self.name = name

    def as_sql(self, _compiler: SQLCompiler, _connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        """Return a placeholder, with the parameter itself instead of a value."""
        return "%s", (self,)


class _Statement(Generic[M]):
    """A queryset's SQL for a database vendor, with its parameters."""

    def __init__(self, compiler: SQLCompiler) -> None:
        self.compiler = compiler
        self.sql, parameters = compiler.as_sql()
        self._values: list[Any] = list(parameters)
        self._places: dict[str, tuple[Field[Any, Any], list[int]]] = {}
        for place, value in enumerate(self._values):
            if isinstance(value, Parameter):
                _field, places = self._places.setdefault(value.name, (value.output_field, []))
                places.append(place)

    def filled(self, given: Mapping[str, Any], database: BaseDatabaseWrapper) -> list[Any]:
        """Return the values of all placeholders. A repeated parameter is converted once."""
        values = self._values.copy()
        for name, (field, places) in self._places.items():
            value = field.get_db_prep_value(given[name], database)
            for place in places:
                values[place] = value
        return values


class CompiledQuery(Generic[M]):
    """A ``values_list`` queryset with parameters. ``build`` is called at the first use.

    PostgreSQL sends the row in binary format. Decoding a binary timestamp takes a third of the time
    that text takes, and a large ``bytea`` has half the size of its hexadecimal text.
    """

    def __init__(self, build: Callable[[], QuerySet[M, Any]]) -> None:
        self._build = build
        self._statement = functools.cache(self._compile)

    def _compile(self, _vendor: str) -> tuple[_Statement[M], dict[int, Any]]:
        compiler = self._build().query.get_compiler(connection=connection)
        statement: _Statement[M] = _Statement(compiler)
        columns = [expression for expression, _sql, _alias in compiler.select or ()]
        return statement, compiler.get_converters(columns)

    def row(self, *, using: str = DEFAULT_DB_ALIAS, **given: Any) -> Sequence[Any] | None:
        """Run the query and return its first row, in the order of ``values_list``, or None."""
        database = connections[using]
        statement, converters = self._statement(database.vendor)
        row = _first_row(database, statement.sql, statement.filled(given, database))
        return _converted(row, statement, converters)

    def row_with(self, prefetch: Prefetch[Any], **given: Any) -> Sequence[Any] | None:
        """Run the query and, if it finds a row, also store the row of the prefetch."""
        database = connections[DEFAULT_DB_ALIAS]
        own, converters = self._statement(database.vendor)
        other, other_converters = prefetch.query._statement(database.vendor)
        row = _first_row(
            database,
            f"SELECT * FROM ({own.sql}) AS own LEFT JOIN ({other.sql}) AS other ON TRUE",  # noqa: S608 - compiled
            [*own.filled(given, database), *other.filled(prefetch.given, database)],
        )
        if row is None:
            return None
        width = len(own.compiler.select)
        found = None if row[width] is None else row[width:]
        prefetch.store(_converted(found, other, other_converters))
        return _converted(row[:width], own, converters)


def _converted(
    row: Sequence[Any] | None, statement: _Statement[Any], converters: dict[int, Any]
) -> Sequence[Any] | None:
    if row is not None and converters:
        (row,) = statement.compiler.apply_converters([row], converters)
    return row


def _first_row(
    database: BaseDatabaseWrapper, sql: str, values: Sequence[Any]
) -> Sequence[Any] | None:
    with database.cursor() as cursor:
        if database.vendor == "postgresql":
            from psycopg.pq import Format  # noqa: PLC0415 - loaded with PostgreSQL, and only there

            cursor.cursor.format = Format.BINARY
        cursor.execute(sql, values)
        row: Sequence[Any] | None = cursor.fetchone()
    return row


class Prefetch(Generic[M]):
    """A query for a row that another query can load in the same round trip (``row_with``).

    The first column of the row is never null.
    """

    def __init__(self, query: CompiledQuery[M], **given: Any) -> None:
        self.query, self.given = query, given
        self._stored: list[Sequence[Any] | None] = []

    def store(self, row: Sequence[Any] | None) -> None:
        """Store the prefetched row, or None if no row exists, for the next ``row``."""
        self._stored = [row]

    def row(self) -> Sequence[Any] | None:
        """Return the prefetched row on the first call, and query the current row on later calls."""
        return self._stored.pop() if self._stored else self.query.row(**self.given)

    def peek(self) -> Sequence[Any] | None:
        """Return the row and store it for the next ``row``."""
        row = self.row()
        self.store(row)
        return row


class CompiledChange(Generic[M]):
    """An UPDATE that also inserts other rows, in the same transaction, if it changes a row.

    The queryset may have parameters. Each column in ``columns`` is set to the argument with the
    same name. ``fixed`` contains constant values or expressions. On PostgreSQL, this is a single
    statement in one round trip, in its own transaction, which never waits for a client. In a race,
    only one update succeeds. On Citus, rows on workers are inserted in a further statement.
    """

    def __init__(self, build: Callable[[], QuerySet[M]], *columns: str, **fixed: Any) -> None:
        self._build, self._columns, self._fixed = build, columns, fixed
        self._statement = functools.cache(self._compile)

    def _compile(self, _vendor: str) -> _Statement[M]:
        queryset = self._build()
        fields = {field.name: field for field in queryset.model._meta.concrete_fields}
        given = {name: Parameter(name, fields[name]) for name in self._columns}
        query: Any = queryset.query.chain(UpdateQuery)
        query.add_update_values({**given, **self._fixed})
        return _Statement(query.get_compiler(connection=connection))

    def run_with(self, *rows: Model, **given: Any) -> bool:
        """Run the update. If it changed a row, insert ``rows`` and return True."""
        database = connections[DEFAULT_DB_ALIAS]
        update = self._statement(database.vendor)
        return _run(database, update.sql, update.filled(given, database), rows)


def _run(
    database: BaseDatabaseWrapper, sql: str, values: Sequence[Any], rows: Sequence[Model]
) -> bool:
    """Run a statement. If it changed a row, insert ``rows`` and return True.

    On Citus, these are two statements, because a single statement would require all workers.
    """
    if database.vendor == "postgresql" and rows:
        distributed = citus.tables()
        remote = [row for row in rows if row._meta.db_table in distributed]
        sql, values = _combined(database, sql, values, [row for row in rows if row not in remote])
        rows = remote
    with transaction.atomic() if rows else nullcontext(), database.cursor() as cursor:
        cursor.execute(sql, values)
        if not cursor.rowcount:
            return False
        for row in rows:
            insert(row)
    return True


def _combined(
    database: BaseDatabaseWrapper, sql: str, values: Sequence[Any], rows: Sequence[Model]
) -> tuple[str, list[Any]]:
    parts, all_values = [f"changed AS ({sql} RETURNING 1)"], [*values]
    for number, row in enumerate(rows):
        into, places, more = _insertion(row, database)
        inserted = f"{into} SELECT {places} FROM changed"  # noqa: S608 - our own names
        parts.append(f"row{number} AS ({inserted})")
        all_values += more
    return f"WITH {', '.join(parts)} SELECT 1 FROM changed", all_values  # noqa: S608 - our own names


class CompiledInsert(Generic[M]):
    """An atomic INSERT of rows on the condition that a queryset with parameters finds a row."""

    def __init__(self, condition: Callable[[], QuerySet[M, Any]]) -> None:
        self._condition = condition
        self._statement = functools.cache(self._compile)

    def _compile(self, _vendor: str) -> _Statement[M]:
        return _Statement(self._condition().query.get_compiler(connection=connection))

    def run(self, instance: Model, *rows: Model, **given: Any) -> bool:
        """Insert the rows if the condition is true, and return whether it is true."""
        database = connections[DEFAULT_DB_ALIAS]
        into, places, values = _insertion(instance, database)
        condition = self._statement(database.vendor)
        sql = f"{into} SELECT {places} WHERE EXISTS ({condition.sql})"
        return _run(database, sql, [*values, *condition.filled(given, database)], rows)


def insert(instance: Model) -> None:
    """Insert a new row, like ``save(force_insert=True)`` without signals.

    Citus commits ``INSERT … VALUES`` on a worker before the rest of the transaction, but the result
    of a query on the coordinator in two phases.
    """
    database = connections[DEFAULT_DB_ALIAS]
    into, places, values = _insertion(instance, database)
    given = f"VALUES ({places})"
    if instance._meta.db_table in citus.tables():
        given = f"SELECT {places} FROM generate_series(1, 1)"  # noqa: S608 - our own names
    with database.cursor() as cursor:
        cursor.execute(f"{into} {given}", values)


def _insertion(instance: Model, database: BaseDatabaseWrapper) -> tuple[str, str, list[Any]]:
    values = [
        field.get_db_prep_save(getattr(instance, field.attname), database)
        for field in instance._meta.concrete_fields
    ]
    return *_insert_text(type(instance), database.vendor), values


@functools.cache
def _insert_text(model: type[Model], _vendor: str) -> tuple[str, str]:
    quote = connection.ops.quote_name
    columns = [quote(field.column or "") for field in model._meta.concrete_fields]
    table = quote(model._meta.db_table)
    return f"INSERT INTO {table} ({', '.join(columns)})", ", ".join(["%s"] * len(columns))


def instance_of(model: type[M], row: Sequence[Any]) -> M:
    """Return the model instance for a row of all columns."""
    names = [field.attname for field in model._meta.concrete_fields]
    return model.from_db(connection.alias, names, row)
