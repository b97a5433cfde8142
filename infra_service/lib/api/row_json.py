"""Derive an SQL expression from a serializer, with which PostgreSQL renders a row as JSON.

Every field requires an entry in ``_FORMS``, and a column or annotation of a matching type.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.core.exceptions import FieldDoesNotExist
from django.db import connection, models
from rest_framework import serializers

from infra_service.lib.api.fields import PresentSerializer
from infra_service.lib.database.bounded_pages.selecting import ColumnOf, Columns, columns_sql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rest_framework.serializers import BaseSerializer


class Form(NamedTuple):
    """The SQL that renders columns of these types. ``{0}`` is the column."""

    columns: tuple[type[models.Field[Any, Any]], ...]
    sql: str


_TEXT: Final = Form((models.CharField, models.TextField), "TO_JSON({0}::TEXT)::TEXT")
_JSON: Final = Form((models.JSONField,), "{0}::TEXT")
#: Forms by the method that renders a field. This excludes subclasses with their own method.
_FORMS: Final[dict[Any, Form]] = {
    serializers.CharField.to_representation: _TEXT,
    serializers.ChoiceField.to_representation: _TEXT,
    serializers.UUIDField.to_representation: Form((models.UUIDField,), "'\"' || {0} || '\"'"),
    serializers.IntegerField.to_representation: Form((models.IntegerField,), "{0}::TEXT"),
    serializers.BooleanField.to_representation: Form((models.BooleanField,), "{0}::TEXT"),
    # The format of the setting DATETIME_FORMAT, in quotes.
    serializers.DateTimeField.to_representation: Form(
        (models.DateTimeField,),
        'TO_CHAR({0} AT TIME ZONE \'UTC\', \'\\"YYYY-MM-DD"T"HH24:MI:SS.US"Z\\""\')',
    ),
    serializers.JSONField.to_representation: _JSON,
    serializers.ListField.to_representation: _JSON,
}


Parts = tuple[Any, ...]


class Source(NamedTuple):
    """The source of a value: a column or annotation, and the key within a JSON value."""

    name: str
    key: str
    form: Form


class OmittedWhenNull(NamedTuple):
    """Parts that are omitted while a column is null."""

    name: str
    parts: Parts


class UnknownFieldError(Exception):
    """A serializer field that the database cannot render."""


@functools.cache
def derive(serializer: type[BaseSerializer[Any]]) -> Parts | None:
    """Return the parts of a row's JSON, or None if a field is unsupported."""
    try:
        return ("{", *_members(serializer()), "}")
    except UnknownFieldError:
        return None


def _members(serializer: Any) -> Iterator[Any]:
    if type(serializer).to_representation is not serializers.Serializer.to_representation:
        raise UnknownFieldError
    comma = ""
    for name, field in serializer.fields.items():
        if field.write_only:
            continue
        opening = f'{comma}"{name}":'
        if isinstance(field, PresentSerializer):
            yield OmittedWhenNull(field.present_with, (f"{opening}{{", *_members(field), "}"))
        else:
            yield opening
            yield _source(field)
        comma = ","


def _source(field: Any) -> Source:
    form = _FORMS.get(getattr(type(field), "to_representation", None))
    name, *keys = field.source_attrs or [""]
    if form is None or not name or len(keys) > 1 or not all(map(str.isidentifier, keys)):
        raise UnknownFieldError
    return Source(name, "".join(keys), form)


def names_of(parts: Parts) -> Iterator[str]:
    """Yield the columns and annotations of the parts."""
    for part in parts:
        if not isinstance(part, str):
            yield part.name
        if isinstance(part, OmittedWhenNull):
            yield from names_of(part.parts)


def row_json(parts: Parts, query: Any) -> Columns:
    """Return the expression with which PostgreSQL renders a row of the query."""
    writer = _Writer(query)
    sql = writer.concat(parts)
    return Columns(sql, tuple(writer.params), tuple(writer.joins))


class _Writer:
    """A builder of the expression, its parameters and its joins."""

    def __init__(self, query: Any) -> None:
        self.params: list[Any] = []
        self.joins: dict[str, None] = {}
        self._query = query
        self._compiler = query.get_compiler(connection=connection)

    def concat(self, parts: Parts) -> str:
        """Return a CONCAT of the parts. Missing values become null."""
        pieces = [f"'{part}'" if isinstance(part, str) else self._piece(part) for part in parts]
        return f"CONCAT({', '.join(pieces)})"

    def _piece(self, part: Source | OmittedWhenNull) -> str:
        column, never_null = self._column(part.name)
        if isinstance(part, OmittedWhenNull):
            return f"CASE WHEN {column} IS NOT NULL THEN {self.concat(part.parts)} END"
        if part.key:
            column, never_null = f"({column} ->> '{part.key}')", False
        text = part.form.sql.format(column)
        return text if never_null else f"COALESCE({text}, 'null')"

    def _column(self, name: str) -> tuple[str, bool]:
        """Return a column or annotation, and whether it is never null."""
        model, annotation = self._query.model, self._query.annotations.get(name)
        if annotation is None:
            return columns_sql(model, [name])[0], not model._meta.get_field(name).null
        if isinstance(annotation, ColumnOf):
            self.joins[annotation.join(model._meta.db_table)] = None
            return annotation.column(), False
        sql, params = self._compiler.compile(annotation)
        self.params += params
        return sql, False


def is_served(parts: Parts, query: Any) -> bool:
    """Return whether each part has a column or annotation of a matching type."""
    for part in parts:
        if isinstance(part, str):
            continue
        kind = _type_of(part.name, query)
        if isinstance(part, OmittedWhenNull):
            if kind is None or not is_served(part.parts, query):
                return False
        elif not isinstance(kind, models.JSONField if part.key else part.form.columns):
            return False
    return True


def _type_of(name: str, query: Any) -> Any:
    if name in query.annotations:
        return query.annotations[name].output_field
    try:
        field = query.model._meta.get_field(name)
    except FieldDoesNotExist:
        return None
    if getattr(field, "attname", None) != name:
        return None
    return field.target_field if field.is_relation else field
