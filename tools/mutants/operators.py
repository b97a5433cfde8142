"""The mutation operators: a selection of cosmic-ray's operators, and four additional operators.

cosmic-ray would replace each Python operator with every other operator. ``a + b`` would produce
eleven mutants, and most of them raise a ``TypeError`` in any test. Such mutants would increase the
share of killed mutants, but reveal nothing about the tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import cosmic_ray.plugins
from cosmic_ray.operators.operator import Operator
from parso.python.tree import Keyword

_CHOSEN: Final = (
    *(
        f"ReplaceBinaryOperator_{pair}"
        for pair in (
            "Add_Sub", "Sub_Add", "Mul_FloorDiv", "Div_Mul", "FloorDiv_Mul", "Mod_FloorDiv",
            "Pow_Mul", "RShift_LShift", "LShift_RShift", "BitOr_BitAnd", "BitAnd_BitOr",
            "BitXor_BitAnd",
        )
    ),
    *(
        f"ReplaceComparisonOperator_{pair}"
        for pair in (
            "Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is", "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt",
            "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt",
        )
    ),
    *(f"ReplaceUnaryOperator_Delete_{name}" for name in ("USub", "Invert", "Not")),
    "AddNot",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ExceptionReplacer",
    "NumberReplacer",
    "RemoveDecorator",
    "ZeroIterationForLoop",
)  # fmt: skip


class _Own(Operator):
    """A mutation operator that makes at most one change to a node."""

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if self.applies(node):
            yield node.start_pos, node.end_pos

    def applies(self, node: Any) -> bool:
        raise NotImplementedError


class RemoveStatement(_Own):
    """Remove a call, a ``raise``, a ``return``, or an assignment to an attribute."""

    def applies(self, node: Any) -> bool:
        if node.type != "simple_stmt":
            return False
        statement = node.children[0]
        if statement.type == "expr_stmt":
            # Without the assignment to a plain name, any test would raise a NameError.
            target, operator = statement.children[0], statement.children[1]
            return target.type != "name" or (operator.type == "operator" and operator.value != "=")
        return statement.type in ("atom_expr", "raise_stmt", "return_stmt") or (
            statement.type == "keyword" and statement.value in ("raise", "return")
        )

    def mutate(self, node: Any, _index: int) -> Any:
        first = node.get_first_leaf()
        node.children[0] = Keyword("pass", first.start_pos, first.prefix)
        return node


class RemoveNamedArgument(_Own):
    """Remove a keyword argument of a call, such as a condition of a query."""

    def applies(self, node: Any) -> bool:
        return self._named(node) and node.parent.type in ("trailer", "arglist")

    @staticmethod
    def _named(node: Any) -> bool:
        return node.type == "argument" and node.children[1] == "="

    def mutate(self, node: Any, _index: int) -> Any:
        siblings = node.parent.children
        place = next(i for i, sibling in enumerate(siblings) if sibling is node)
        follows = siblings[place + 1] if place + 1 < len(siblings) else None
        if follows is not None and follows.type == "operator" and follows.value == ",":
            follows.value = ""
        return None


class ReplaceInWithNotIn(_Own):
    """Replace ``in`` with ``not in``."""

    def applies(self, node: Any) -> bool:
        return node.type == "keyword" and node.value == "in" and node.parent.type == "comparison"

    def mutate(self, node: Any, _index: int) -> Any:
        return Keyword("not in", node.start_pos, node.prefix)


class ReplaceNotInWithIn(_Own):
    """Replace ``not in`` with ``in``."""

    def applies(self, node: Any) -> bool:
        return node.type == "comp_op" and [part.value for part in node.children] == ["not", "in"]

    def mutate(self, node: Any, _index: int) -> Any:
        return Keyword("in", node.start_pos, node.get_first_leaf().prefix)


OPERATORS: Final[tuple[Operator, ...]] = (
    *(cosmic_ray.plugins.get_operator(f"core/{name}")() for name in _CHOSEN),
    RemoveStatement(),
    RemoveNamedArgument(),
    ReplaceInWithNotIn(),
    ReplaceNotInWithIn(),
)
