"""The syntax tree of a filter, independent of field sets: terms, NOT, AND and OR."""

from typing import NamedTuple


class Value(NamedTuple):
    """A value without its quotes. ``position`` is the position of its first character."""

    text: str
    quoted: bool
    position: int


class Term(NamedTuple):
    """A comparison. ``name`` is ``labels.app`` for both spellings of the label ``app``.

    ``operator`` is in upper case with single spaces, and determines the number of values.
    """

    name: str
    name_position: int
    operator: str
    operator_position: int
    values: tuple[Value, ...] = ()


class Not(NamedTuple):
    """The rows that ``child`` does not select."""

    child: "Node"


class And(NamedTuple):
    """The intersection of the rows that two or more children select."""

    children: "tuple[Node, ...]"


class Or(NamedTuple):
    """The union of the rows that two or more children select."""

    children: "tuple[Node, ...]"


Node = Term | Not | And | Or
