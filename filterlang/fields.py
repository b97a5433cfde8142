"""Field sets: the filters that a ``FilterSet`` declares, with the columns of its model."""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.core.exceptions import FieldDoesNotExist, ImproperlyConfigured
from django_filters import FilterSet

from filterlang.errors import Code, FilterError
from filterlang.fieldtypes import PRESENCE, BooleanType, FieldType, field_type
from filterlang.invisible import first_invisible
from filterlang.nodes import Term
from filterlang.spelling import closest

FieldSet = Mapping[str, "Field"]


class Field(NamedTuple):
    """A declared filter: its type, the ORM path of its column, and the lookup of ``=``.

    ``inverted`` is django-filter's ``exclude`` of a boolean, so that
    ``BooleanFilter(field_name="lock_id", lookup_expr="isnull", exclude=True)`` means "is locked".
    ``nullable`` fields may be null. Django omits the null test of an ``unguarded`` expression in a
    negated condition. ``description`` is the filter's ``help_text``, for a field that the listed
    items do not contain.
    """

    name: str
    type: FieldType
    path: str
    equals: str
    inverted: bool
    nullable: bool
    unguarded: bool = False
    description: str = ""

    @property
    def operators(self) -> tuple[str, ...]:
        """Return the operators of the type, and the tests for null if the field is nullable."""
        return (*self.type.operators, *PRESENCE) if self.nullable else self.type.operators

    @property
    def written(self) -> str:
        """Return the field as the user writes it in a list of fields."""
        return self.type.written(self.name)


@functools.cache
def field_set(filterset: type[FilterSet]) -> FieldSet:
    """Return the fields that a ``FilterSet`` class declares, by name.

    Raise ``ImproperlyConfigured`` for a filter that the language does not support.
    """
    return {
        name: _field(filterset, name, declared) for name, declared in filterset.base_filters.items()
    }


def _field(filterset: type[FilterSet], name: str, declared: Any) -> Field:
    columns = _columns(filterset._meta.model, declared.field_name)
    kind = field_type(declared.field, columns[-1] if columns else None)
    plain = declared.lookup_expr == "exact" and not declared.exclude
    if declared.method or not (plain or isinstance(kind, BooleanType)):
        raise ImproperlyConfigured(
            f"{filterset.__name__}.{name}: the filter language does not support `method`, and "
            "supports `lookup_expr` and `exclude` only for booleans"
        )
    path = declared.field_name
    unguarded = not columns and getattr(declared.field, "nullable", False)
    nullable = plain and (unguarded or any(column.null for column in columns))
    equals = f"{path}__{declared.lookup_expr}"
    text = str(declared.field.help_text)
    return Field(name, kind, path, equals, declared.exclude, nullable, unguarded, text)


def _columns(model: Any, path: str) -> list[Any]:
    """Return the columns along an ORM path, or an empty list if the path does not exist."""
    columns = []
    for name in path.split("__"):
        try:
            columns.append(model._meta.get_field(name))
        except (AttributeError, FieldDoesNotExist):
            return []
        model = columns[-1].related_model
    return columns


def find(fields: FieldSet, term: Term) -> tuple[Field, str | None]:
    """Return the field of a term, and the key of a label (None for other fields).

    Raise ``FilterError`` for an unknown field or an operator that the field does not support.
    """
    name, dot, rest = term.name.partition(".")
    if term.name in fields:  # the field's name may contain a dot
        name, dot, rest = term.name, "", ""
    field = fields.get(name)
    key = field.type.key_of(rest) if field is not None and dot else None
    if field is None or field.type.has_keys is (key is None) or (dot and key is None):
        raise _unknown(fields, term)
    if term.operator not in field.operators:
        raise FilterError(
            Code.OPERATOR,
            term.operator_position,
            f"not allowed for field '{term.name}' ({field.type.name})",
            f"allowed: {', '.join(field.operators)}",
        )
    return field, key


def _unknown(fields: FieldSet, term: Term) -> FilterError:
    listed = ", ".join(field.written for field in fields.values())
    name, dot, _ = term.name.partition(".")
    if invisible := first_invisible(term.name):
        suggestion = f"remove {invisible}"
    elif name in fields and (not dot or fields[name].type.has_keys):
        suggestion = f"write {fields[name].written}"
    else:
        guess = closest(term.name, fields)
        suggestion = f"did you mean '{guess}'?" if guess else ""
    return FilterError(
        Code.UNKNOWN_FIELD,
        term.name_position,
        f"unknown field '{term.name}'; filterable fields: {listed}",
        suggestion,
    )
