"""Split the WHERE clause of a queryset into comparisons, which an index may decide."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db.models import Exists, OuterRef, lookups
from django.db.models.expressions import Col
from django.db.models.sql.where import AND, WhereNode

from filterlang.lookups import LabelExists, TextMatches
from infra_service.lib.database import citus
from infra_service.lib.database.prefixes import end_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet


class NamedBy(Exists):
    """An EXISTS condition: ``column`` of a row in ``rows`` refers to this row's primary key.

    Pages are read starting from ``rows`` where this is faster (see ``semi_joins``).
    """

    #: Whether a reference is sufficient. Otherwise, each referenced row is tested again.
    is_exact: ClassVar[bool] = True

    def __init__(self, rows: QuerySet[Any, Any], column: str) -> None:
        super().__init__(rows.filter((column, OuterRef("pk"))))
        self.rows, self.column = rows, column

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **options: Any) -> Any:
        """Return the condition. On Citus, it is ``pk IN (…)``, because the rows may be distributed.

        Citus cannot correlate a subquery with a limited table.
        """
        if not (self.is_exact and citus.is_used()):
            return super().as_sql(compiler, connection, *args, **options)
        where: Any = self.query.where
        key = where.children[-1].rhs
        named = self.rows.filter((f"{self.column}__isnull", False)).values(self.column)
        return compiler.compile(lookups.In(key, named.query))


class Kind(Enum):
    """The kind of a comparison, which determines how an index can serve it."""

    EQUAL = "="
    IN = "IN"
    RANGE = "BETWEEN"
    NULL = "IS NULL"
    NOT_NULL = "IS NOT NULL"


_KINDS: Final[dict[type[Any], Kind]] = {
    lookups.Exact: Kind.EQUAL,
    lookups.In: Kind.IN,
    lookups.GreaterThan: Kind.RANGE,
    lookups.GreaterThanOrEqual: Kind.RANGE,
    lookups.LessThan: Kind.RANGE,
    lookups.LessThanOrEqual: Kind.RANGE,
    lookups.Range: Kind.RANGE,
}
#: The cost of a lookup in another table, as a number of text searches.
_JOIN: Final = 10


class Comparison(NamedTuple):
    """A comparison that every row must satisfy, at ``node.children[position]``.

    The ``node`` of an implied comparison is None.
    """

    column: str
    kind: Kind
    lookup: Any
    node: Any = None
    position: int = 0


class Conditions(NamedTuple):
    """The parts of a WHERE clause: the comparisons, and the number of other conditions.

    ``named`` contains the other conditions that test for references from another table.
    """

    comparisons: tuple[Comparison, ...]
    others: int
    named: tuple[NamedBy, ...] = ()

    def of(self, column: str, *kinds: Kind) -> tuple[Comparison, ...]:
        return tuple(c for c in self.comparisons if c.column == column and c.kind in kinds)


def conditions_of(query: Any) -> Conditions:
    """Return the conditions of a query. Only conditions combined by AND can be comparisons."""
    comparisons: list[Comparison] = []
    named: list[NamedBy] = []
    others = 0
    for node, position in _conjuncts(query.where):
        lookup = node.children[position]
        column: Any = getattr(lookup, "lhs", None)
        if not isinstance(column, Col) or column.alias != query.model._meta.db_table:
            others += 1
            if isinstance(column, NamedBy) and lookup.rhs is True:
                named.append(column)
            continue
        comparisons += _implied(lookup, column, query.model)
        kind = _kind(lookup)
        if kind is None:
            others += 1
        else:
            comparisons.append(Comparison(column.target.attname, kind, lookup, node, position))
    return Conditions(tuple(comparisons), others, tuple(named))


def settle(query: Any) -> None:
    """Remove conditions that an equality on the same column makes redundant.

    Raises:
        EmptyResultSet: no row can match. For example, a list of values is empty, or a column would
            have to be null and have a value.
    """
    _make_single_values_equalities(query)
    comparisons = conditions_of(query).comparisons
    null = {c.column for c in comparisons if c.kind is Kind.NULL}
    if any(c.column in null and c.kind is not Kind.NULL for c in comparisons):
        raise EmptyResultSet
    kinds = (Kind.EQUAL, Kind.IN)
    compared = [c for c in comparisons if c.node and c.kind in kinds]
    equal: dict[str, Comparison] = {}
    for comparison in compared:
        if comparison.kind is Kind.EQUAL:
            equal.setdefault(comparison.column, comparison)
    for comparison in compared:
        deciding, lookup = equal.get(comparison.column, comparison), comparison.lookup
        if comparison.kind is Kind.IN and not lookup.rhs:
            raise EmptyResultSet
        if deciding is comparison:
            continue
        values = [lookup.rhs] if comparison.kind is Kind.EQUAL else lookup.rhs
        if deciding.lookup.rhs not in values:
            raise EmptyResultSet
        node: Any = comparison.node
        # Compare by identity, because the deciding comparison may be equal.
        node.children[:] = [child for child in node.children if child is not lookup]


def _make_single_values_equalities(query: Any) -> None:
    """Replace IN with one value by an equality, so that an index provides its order."""
    for comparison in conditions_of(query).comparisons:
        lookup = comparison.lookup
        if comparison.kind is Kind.IN and len(lookup.rhs) == 1:
            (value,) = lookup.rhs
            exact = lookup.lhs.output_field.get_lookup("exact")
            comparison.node.children[comparison.position] = exact(lookup.lhs, value)


def weight(query: Any) -> int:
    """Return the cost of testing a row, as a number of text and label searches.

    Comparisons of columns cost less, and are not counted.
    """
    return sum(_weight(leaf) for leaf in query.where.leaves())


def _weight(leaf: Any) -> int:
    rhs = getattr(leaf, "rhs", None)
    if isinstance(rhs, dict):  # a label compared with one or several values
        (values,) = rhs.values()
        return len(values) if type(values) is tuple else 1
    if _joins(leaf):
        return _JOIN
    return 1 if isinstance(leaf, TextMatches | LabelExists) else 0


def _joins(leaf: Any) -> bool:
    lhs: Any = getattr(leaf, "lhs", None)
    parts = lhs.flatten() if hasattr(lhs, "flatten") else ()
    return any(isinstance(part, Exists) and not isinstance(part, NamedBy) for part in parts)


def without(query: Any, condition: NamedBy) -> None:
    """Remove a condition from the query's WHERE."""
    for node, position in _conjuncts(query.where):
        if getattr(node.children[position], "lhs", None) is condition:
            del node.children[position]
            return


def _conjuncts(node: Any) -> Iterator[tuple[Any, int]]:
    for position, child in enumerate(node.children):
        if isinstance(child, WhereNode) and child.connector == AND and not child.negated:
            yield from _conjuncts(child)
        else:
            yield node, position


def _kind(lookup: Any) -> Kind | None:
    if isinstance(lookup, lookups.IsNull):
        return Kind.NULL if lookup.rhs else Kind.NOT_NULL
    if not lookup.rhs_is_direct_value():
        return None
    return next((kind for base, kind in _KINDS.items() if isinstance(lookup, base)), None)


def _implied(lookup: Any, column: Col, model: Any) -> Iterator[Comparison]:
    """Yield the comparisons that a condition implies and an index can serve."""
    implied: list[Any] = []
    if isinstance(lookup, TextMatches):
        # A prefix is a range if the column is sorted in byte order.
        piece = lookup.rhs
        names = getattr(model, "byte_ordered", ())
        if piece.at_start and not piece.ignore_case and column.target.attname in names:
            implied = [lookups.GreaterThanOrEqual(column, piece.text)]
            if (end := end_of(piece.text)) is not None:
                implied.append(lookups.LessThan(column, end))
    elif hasattr(column.target, "implied_by"):
        implied = list(column.target.implied_by(lookup))
    for other in implied:
        yield Comparison(other.lhs.target.attname, Kind.RANGE, other)
