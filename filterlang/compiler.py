"""Compile nodes to a ``Q``, through the fixed ORM paths of a field set.

The compiler uses text from users only as a key of the field set, or as a value. Keyword arguments
of ``Q`` that come from a request have caused vulnerabilities in Django (CVE-2025-57833,
CVE-2025-64459).

Every condition is true or false, never NULL, even under NOT. Django adds a NULL check to a negated
lookup on a nullable column, and the lookups on labels are never NULL.
"""

import functools
from typing import Any, Final

from django.db.models import Q
from django_filters import FilterSet

from filterlang.fields import Field, FieldSet, field_set, find
from filterlang.fieldtypes import Neighbours, VersionType
from filterlang.lookups import LabelEquals, LabelExists, LabelIn, LabelMatches, Piece, TextMatches
from filterlang.nodes import And, Node, Not, Term
from filterlang.parser import parse
from filterlang.versions import VersionComparison

# Operators that are negations or synonyms of another operator.
_NEGATED: Final = {"!=": "=", "NOT IN": "IN", "IS NULL": "EXISTS"}
_SYNONYMS: Final = {"IS NOT NULL": "EXISTS"}
_COMPARED: Final = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
_SIDES: Final = {"<": ("below", "lte"), ">": ("above", "gte")}
_PIECES: Final[dict[str, dict[str, bool]]] = {
    "~=": {"ignore_case": True},
    "CONTAINS": {},
    "STARTS_WITH": {"at_start": True},
    "ENDS_WITH": {"at_end": True},
}


@functools.lru_cache(maxsize=1024)
def compile_filter(filterset: type[FilterSet], text: str) -> Q:
    """Return the condition of ``text`` on the fields of ``filterset``.

    Return an empty ``Q`` for a blank text, and raise ``FilterError`` for an invalid text. The
    result is cached, so callers may combine it but must not change it.
    """
    node = parse(text)
    if node is None:
        return Q()
    return _compile(node, field_set(filterset))  # type: ignore[arg-type]  # type[Any] is hashable


def _compile(node: Node, fields: FieldSet) -> Q:
    # The parser limits the nesting of parentheses, and thereby the depth of this recursion.
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
    if operator == "IS NULL" and key is None and "__" not in field.path:
        # An index supports this condition. In a path to another table, the row may be missing.
        return Q((f"{field.path}__isnull", True))
    if key is None:
        condition = _column(field, positive, values)
        if field.unguarded:
            condition = Q((f"{field.path}__isnull", False)) & condition
    elif isinstance(field.type, VersionType):
        comparison = VersionComparison(key, positive, *values)
        condition = Q((f"{field.path}__version", comparison))
    else:
        condition = _label(field, key, positive, values)
    return condition if operator == positive else ~condition


def _column(field: Field, operator: str, values: list[Any]) -> Q:
    if operator in _PIECES:
        piece = Piece(values[0], **_PIECES[operator])
        return Q((f"{field.path}__{TextMatches.lookup_name}", piece))
    if operator == "=" and not isinstance(values[0], Neighbours):
        return Q((field.equals, values[0] is False if field.inverted else values[0]))
    lookup, value = _bounded(operator, values)
    return Q((f"{field.path}__{lookup}", value))


def _bounded(operator: str, values: list[Any]) -> tuple[str, Any]:
    """Return an equivalent lookup without values that the column cannot store."""
    if operator == "EXISTS":
        return "isnull", False
    if operator == "BETWEEN":
        low, high = _nearest(values[0], "above"), _nearest(values[1], "below")
        return ("in", []) if None in {low, high} else ("range", [low, high])
    if operator in _COMPARED:
        (value,) = values
        if not isinstance(value, Neighbours):
            return _COMPARED[operator], value
        side, including = _SIDES[operator[0]]
        nearest = _nearest(value, side)
        return ("in", []) if nearest is None else (including, nearest)
    return "in", [value for value in values if not isinstance(value, Neighbours)]


def _nearest(value: Any, side: str) -> Any:
    return getattr(value, side) if isinstance(value, Neighbours) else value


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
