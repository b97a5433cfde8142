"""Nodes -> ``Q``, through the fixed ORM paths of a field set.

A name that a user wrote is only ever a key into the field set or a value: a ``Q`` made of keyword
arguments from outside has been a hole in Django before (CVE-2025-57833, CVE-2025-64459).

Every condition is true or false, never NULL, also under NOT: Django adds the NULL check to a
negated lookup on a nullable column, and the lookups on labels are two-valued by themselves.
"""

import functools
from typing import Any, Final

from django.db.models import Q
from django_filters import FilterSet

from filterlang.fields import Field, FieldSet, field_set, find
from filterlang.fieldtypes import VersionType
from filterlang.lookups import LabelEquals, LabelExists, LabelIn, LabelMatches, Piece, TextMatches
from filterlang.nodes import And, Node, Not, Term
from filterlang.parser import parse
from filterlang.versions import VersionAsked

# Operators that are the negation of another, or another word for it.
_NEGATED: Final = {"!=": "=", "NOT IN": "IN", "IS NULL": "EXISTS"}
_SYNONYMS: Final = {"IS NOT NULL": "EXISTS"}
_COMPARED: Final = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
_PIECES: Final[dict[str, dict[str, bool]]] = {
    "~=": {"ignore_case": True},
    "CONTAINS": {},
    "STARTS_WITH": {"at_start": True},
    "ENDS_WITH": {"at_end": True},
}


@functools.lru_cache(maxsize=1024)
def compile_filter(filterset: type[FilterSet], text: str) -> Q:
    """Return the condition that ``text`` means for the fields of ``filterset``.

    A blank text gives an empty ``Q``. Raises ``FilterError``. The answer is shared: combine it,
    do not change it.
    """
    node = parse(text)
    if node is None:
        return Q()
    return _compile(node, field_set(filterset))  # type: ignore[arg-type]  # type[Any] is hashable


def _compile(node: Node, fields: FieldSet) -> Q:
    # As deep as parentheses nest at most, which the parser limits.
    if isinstance(node, Term):
        return _compile_term(node, fields)
    if isinstance(node, Not):
        return ~_compile(node.child, fields)
    connector = Q.AND if isinstance(node, And) else Q.OR
    return Q(*[_compile(child, fields) for child in node.children], _connector=connector)


def _compile_term(term: Term, fields: FieldSet) -> Q:
    field, key = find(fields, term)
    values = [field.type.convert(value) for value in term.values]
    operator = _SYNONYMS.get(term.operator, term.operator)
    positive = _NEGATED.get(operator, operator)
    if key is None:
        condition = _column(field, positive, values)
    elif isinstance(field.type, VersionType):
        asked = VersionAsked(key, positive, *values)
        condition = Q((f"{field.path}__version", asked))
    else:
        condition = _label(field, key, positive, values)
    return condition if operator == positive else ~condition


def _column(field: Field, operator: str, values: list[Any]) -> Q:
    path = field.path
    if operator == "IN":
        return Q((f"{path}__in", values))
    if operator == "BETWEEN":
        return Q((f"{path}__range", values))
    (value,) = values
    if operator == "=":
        return Q((field.equals, value is False if field.inverted else value))
    if operator in _COMPARED:
        return Q((f"{path}__{_COMPARED[operator]}", value))
    return Q((f"{path}__{TextMatches.lookup_name}", Piece(value, **_PIECES[operator])))


def _label(field: Field, key: str, operator: str, values: list[Any]) -> Q:
    if operator == "EXISTS":
        return Q((f"{field.path}__{LabelExists.lookup_name}", key))
    if operator == "IN":
        return Q((f"{field.path}__{LabelIn.lookup_name}", {key: tuple(values)}))
    (value,) = values
    if operator == "=":
        return Q((f"{field.path}__{LabelEquals.lookup_name}", {key: value}))
    return Q(
        (f"{field.path}__{LabelMatches.lookup_name}", {key: Piece(value, **_PIECES[operator])})
    )
