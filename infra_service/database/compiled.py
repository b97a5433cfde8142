"""Statements that are compiled once, for the paths where compiling would cost the most.

Turning a queryset into SQL costs several times what PostgreSQL spends on running a look-up by a
unique index, and the text is the same on each request. What varies stands in the queryset as a
``Parameter``. Models, fields and conversions stay the ORM's; nothing here is written in SQL.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.models import Expression, Model
from django.db.models.sql import UpdateQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import Field, QuerySet
    from django.db.models.sql.compiler import SQLCompiler

M = TypeVar("M", bound=Model)


class Parameter(Expression):
    """A value that is given when the statement is run, by name."""

    def __init__(self, name: str, output_field: Field[Any, Any]) -> None:
        super().__init__(output_field=output_field)
        self.name = name

    def as_sql(self, _compiler: SQLCompiler, _connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        """Return a placeholder, with the parameter itself in the value's place."""
        return "%s", (self,)


class _Statement(Generic[M]):
    """A queryset's text for one kind of database, and how to fill it."""

    def __init__(self, compiler: SQLCompiler) -> None:
        self.compiler = compiler
        self.sql, parameters = compiler.as_sql()
        self.parameters: Sequence[Any] = parameters

    def filled(self, given: Mapping[str, Any]) -> list[Any]:
        return [
            parameter.output_field.get_db_prep_value(given[parameter.name], connection)
            if isinstance(parameter, Parameter)
            else parameter
            for parameter in self.parameters
        ]


class CompiledQuery(Generic[M]):
    """A ``values_list`` queryset with parameters; ``build`` is called at the first use.

    ``is_binary`` spares a large ``bytea`` the way through hexadecimal text, which doubles it.
    """

    def __init__(self, build: Callable[[], QuerySet[M, Any]], *, is_binary: bool = False) -> None:
        self._build, self._is_binary = build, is_binary
        self._statement = functools.cache(self._compile)

    def _compile(self, _vendor: str) -> tuple[_Statement[M], dict[int, Any]]:
        compiler = self._build().query.get_compiler(connection=connection)
        statement: _Statement[M] = _Statement(compiler)
        columns = [expression for expression, _sql, _alias in compiler.select or ()]
        return statement, compiler.get_converters(columns)

    def row(self, *, using: str = DEFAULT_DB_ALIAS, **given: Any) -> Sequence[Any] | None:
        """Run the query and return its first row, in the order of ``values_list``, or None."""
        statement, _converters = self._statement(connection.vendor)
        row = _first_row(statement.sql, statement.filled(given), using, is_binary=self._is_binary)
        return self._converted(row)

    def row_with(self, along: Asked[Any], **given: Any) -> Sequence[Any] | None:
        """Do the same, and bring the row of another query along if this one finds any."""
        query = along.query
        own, _ = self._statement(connection.vendor)
        other, _ = query._statement(connection.vendor)
        row = _first_row(
            f"SELECT * FROM ({own.sql}) AS own LEFT JOIN ({other.sql}) AS other ON TRUE",  # noqa: S608 - compiled
            [*own.filled(given), *other.filled(along.given)],
            DEFAULT_DB_ALIAS,
            is_binary=query._is_binary,
        )
        if row is None:
            return None
        width = len(own.compiler.select)
        along.came(None if row[width] is None else query._converted(row[width:]))
        return self._converted(row[:width])

    def _converted(self, row: Sequence[Any] | None) -> Sequence[Any] | None:
        statement, converters = self._statement(connection.vendor)
        if row is not None and converters:
            (row,) = statement.compiler.apply_converters([row], converters)
        return row


def _first_row(
    sql: str, values: Sequence[Any], using: str, *, is_binary: bool
) -> Sequence[Any] | None:
    with connections[using].cursor() as cursor:
        if is_binary and connection.vendor == "postgresql":
            from psycopg.pq import Format  # noqa: PLC0415 - loaded with PostgreSQL, and only there

            cursor.cursor.format = Format.BINARY
        cursor.execute(sql, values)
        row: Sequence[Any] | None = cursor.fetchone()
    return row


class Asked(Generic[M]):
    """A query and its parameters, whose row may come along with another's in one round trip.

    Its first column is never null.
    """

    def __init__(self, query: CompiledQuery[M], **given: Any) -> None:
        self.query, self.given = query, given
        self._came: list[Sequence[Any] | None] = []

    def came(self, row: Sequence[Any] | None) -> None:
        """Keep the row, or that there is none, for whoever asks first."""
        self._came = [row]

    def row(self) -> Sequence[Any] | None:
        """Return the row that came along, and from then on the row as it is when it is asked."""
        return self._came.pop() if self._came else self.query.row(**self.given)


class CompiledChange(Generic[M]):
    """An UPDATE, and rows that are inserted if it changes one: all of it or nothing.

    It updates a queryset with parameters; each of ``columns`` is set to its namesake, and ``fixed``
    are values, or expressions, that are the same each time. On PostgreSQL it is one statement, and
    so a transaction of its own: one round trip. It never waits for a client, and who lost a race
    has written nothing.
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
        """Run the update and, if it changed a row, insert these; return whether it did."""
        update = self._statement(connection.vendor)
        if connection.vendor == "postgresql":
            return _change_as_one(update, rows, given)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(update.sql, update.filled(given))
            if not cursor.rowcount:
                return False
            for row in rows:
                insert(row)
        return True


def _change_as_one(
    update: _Statement[Any], rows: Sequence[Model], given: Mapping[str, Any]
) -> bool:
    parts, values = [f"changed AS ({update.sql} RETURNING 1)"], update.filled(given)
    for number, row in enumerate(rows):
        into, places, more = _insertion(row)
        inserted = f"{into} SELECT {places} FROM changed"  # noqa: S608 - our own names
        parts.append(f"row{number} AS ({inserted})")
        values += more
    text = f"WITH {', '.join(parts)} SELECT 1 FROM changed"  # noqa: S608 - our own names
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return bool(cursor.rowcount)


class CompiledInsert(Generic[M]):
    """An INSERT of a row where a queryset with parameters finds something, in one statement."""

    def __init__(self, condition: Callable[[], QuerySet[M, Any]]) -> None:
        self._condition = condition
        self._statement = functools.cache(self._compile)

    def _compile(self, _vendor: str) -> _Statement[M]:
        return _Statement(self._condition().query.get_compiler(connection=connection))

    def run(self, instance: Model, **given: Any) -> bool:
        """Insert the row, or find that the condition does not hold; return whether it did."""
        into, places, values = _insertion(instance)
        condition = self._statement(connection.vendor)
        sql = f"{into} SELECT {places} WHERE EXISTS ({condition.sql})"
        with connection.cursor() as cursor:
            cursor.execute(sql, [*values, *condition.filled(given)])
            return bool(cursor.rowcount)


def insert(instance: Model) -> None:
    """Insert a new row, as ``save(force_insert=True)`` does, without its signals."""
    into, places, values = _insertion(instance)
    with connection.cursor() as cursor:
        cursor.execute(f"{into} VALUES ({places})", values)


def _insertion(instance: Model) -> tuple[str, str, list[Any]]:
    values = [
        field.get_db_prep_save(getattr(instance, field.attname), connection)
        for field in instance._meta.concrete_fields
    ]
    return *_insert_text(type(instance), connection.vendor), values


@functools.cache
def _insert_text(model: type[Model], _vendor: str) -> tuple[str, str]:
    quote = connection.ops.quote_name
    columns = [quote(field.column or "") for field in model._meta.concrete_fields]
    table = quote(model._meta.db_table)
    return f"INSERT INTO {table} ({', '.join(columns)})", ", ".join(["%s"] * len(columns))


def instance_of(model: type[M], row: Sequence[Any] | None) -> M | None:
    """Return the instance of a row of all the columns of a model, or None."""
    names = [field.attname for field in model._meta.concrete_fields]
    return None if row is None else model.from_db(connection.alias, names, row)
