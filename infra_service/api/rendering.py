"""JSON out: one renderer for every answer, and lists whose rows PostgreSQL writes itself.

The rows of such a list pass through Python untouched: the database writes each as JSON text, by an
expression that is derived from the view's serializer, and the page is those texts put together.
That needs a serializer of whose every field the table below knows how it is shown, from a column or
an annotation of a type that goes with it. Any other list goes the ordinary way, from instances
through the serializer; on SQLite a derived one does too, but from ``values()``. The JSON is the
same.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from django.core.exceptions import FieldDoesNotExist
from django.db import connection, models
from django.utils.functional import Promise
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer

from infra_service.api.fields import PresentSerializer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rest_framework.serializers import BaseSerializer


def _as_text(value: Any) -> str:
    """Return a sentence that Django translates late as text; nothing else is text by accident.

    Raises:
        TypeError: no rule says how the value is written.
    """
    if isinstance(value, str | Promise):  # DRF's errors are a kind of text
        return str(value)
    raise TypeError(f"No rule says how {type(value).__name__} is written.")


class JsonRenderer(BaseRenderer):
    """Compact JSON in UTF-8."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,  # noqa: ARG002 - DRF's signature
        renderer_context: Mapping[str, Any] | None = None,  # noqa: ARG002 - DRF's signature
    ) -> bytes:
        """Return the body; none is empty."""
        return b"" if data is None else msgspec.json.encode(data, enc_hook=_as_text)


class Form(NamedTuple):
    """How PostgreSQL writes a column of one of these types; ``{0}`` is the column."""

    columns: tuple[type[models.Field[Any, Any]], ...]
    sql: str


_TEXT: Final = Form((models.CharField, models.TextField), "TO_JSON({0}::TEXT)::TEXT")
#: What a field shows is decided by this method, so a subclass with its own is not known.
_FORMS: Final[dict[Any, Form]] = {
    serializers.CharField.to_representation: _TEXT,
    serializers.ChoiceField.to_representation: _TEXT,
    serializers.UUIDField.to_representation: Form((models.UUIDField,), "'\"' || {0} || '\"'"),
    serializers.IntegerField.to_representation: Form((models.IntegerField,), "{0}::TEXT"),
    serializers.BooleanField.to_representation: Form((models.BooleanField,), "{0}::TEXT"),
    # The settings' DATETIME_FORMAT, in quotes.
    serializers.DateTimeField.to_representation: Form(
        (models.DateTimeField,),
        'TO_CHAR({0} AT TIME ZONE \'UTC\', \'\\"YYYY-MM-DD"T"HH24:MI:SS.US"Z\\""\')',
    ),
    serializers.JSONField.to_representation: Form((models.JSONField,), "{0}::TEXT"),
}


Parts = tuple[Any, ...]


class Source(NamedTuple):
    """Where a value comes from: a column or annotation, and for JSON the key in it."""

    name: str
    key: str
    form: Form


class OmittedWhenNull(NamedTuple):
    """What is left out while a column is null."""

    name: str
    parts: Parts


class UnknownFieldError(Exception):
    """A serializer that the database cannot write."""


@functools.cache
def derive(serializer: type[BaseSerializer[Any]]) -> Parts | None:
    """Return the parts of a row's JSON; None when a field is not known here."""
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
    """Yield the columns and annotations that the parts are made of."""
    for part in parts:
        if not isinstance(part, str):
            yield part.name
        if isinstance(part, OmittedWhenNull):
            yield from names_of(part.parts)


class RowAsJson(models.Expression):
    """A row as JSON text, from derived parts; on PostgreSQL."""

    output_field = models.TextField()

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.parts = parts

    @functools.cached_property
    def identity(self) -> tuple[Any, ...]:
        """What tells it from others: the parts are derived once, and long to compare."""
        return type(self), id(self.parts)

    def as_sql(self, compiler: Any, _connection: Any) -> tuple[str, Any]:
        """Return one CONCAT; what is not there is written as null."""
        annotations = compiler.query.annotations
        if annotations.keys().isdisjoint(names_of(self.parts)):
            return _of_columns(self.parts, compiler.query.model), ()
        return _concat(self.parts, compiler.query.model, annotations, compiler)


@functools.cache
def _of_columns(parts: Parts, model: type[models.Model]) -> str:
    """Return the text for a row of columns only, which is the same each time."""
    return _concat(parts, model, {}, None)[0]


def _concat(
    parts: Parts, model: type[models.Model], annotations: Mapping[str, Any], compiler: Any
) -> tuple[str, tuple[Any, ...]]:
    pieces: list[str] = []
    values: list[Any] = []
    for part in parts:
        if isinstance(part, str):
            pieces.append(f"'{part}'")
            continue
        params: Sequence[Any] = ()
        if part.name in annotations:
            column, params = compiler.compile(annotations[part.name])
            never_null = False
        else:
            field: Any = model._meta.get_field(part.name)
            column = f'"{model._meta.db_table}"."{field.column}"'
            never_null = not field.null
        if isinstance(part, OmittedWhenNull):
            text, inner = _concat(part.parts, model, annotations, compiler)
            pieces.append(f"CASE WHEN {column} IS NOT NULL THEN {text} END")
            values += [*params, *inner]
            continue
        if part.key:
            column, never_null = f"({column} ->> '{part.key}')", False
        text = part.form.sql.format(column)
        pieces.append(text if never_null else f"COALESCE({text}, 'null')")
        values += params
    return f"CONCAT({', '.join(pieces)})", tuple(values)


def _is_served(parts: Parts, query: Any) -> bool:
    """Whether each part has a column or an annotation of a type that goes with it."""
    for part in parts:
        if isinstance(part, str):
            continue
        kind = _type_of(part.name, query)
        if isinstance(part, OmittedWhenNull):
            if kind is None or not _is_served(part.parts, query):
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


class ListReader:
    """How the rows of one list are read: as text, as ``values()``, or as instances."""

    def __init__(self, view: Any, key: list[str]) -> None:
        self.written = False
        self._key = key
        self._view = view
        self._parts = derive(view.get_serializer_class())

    def shown(self, queryset: Any) -> Any:
        """Return the queryset so that it reads the rows in the best of the three ways."""
        parts = self._parts
        # A view that asked for values() itself gets those.
        if parts is None or queryset._fields is not None or not _is_served(parts, queryset.query):
            return queryset
        if connection.vendor != "postgresql":
            return queryset.values(*dict.fromkeys([*self._key, *names_of(parts)]))
        self.written = True
        return queryset.values(*self._key, row_as_json=RowAsJson(parts))

    def items(self, rows: list[Any]) -> Any:
        """Return the rows as parts of an answer, for ``JsonRenderer``."""
        if self.written:
            return [msgspec.Raw(row["row_as_json"]) for row in rows]
        return self._view.get_serializer(rows, many=True).data
