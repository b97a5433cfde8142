"""Conditions with their comparisons replaced by others, which mean the same to the database."""

from collections.abc import Callable
from typing import Any

from django.db.models import Q


def rewritten(condition: Q, replace: Callable[[str, Any], Any]) -> Q:
    """Return the condition with what ``replace(path, value)`` gives for each of its comparisons.

    That is a pair of a path and a value, or an expression that is true or false. Expressions that
    are there already stay.
    """

    def part_of(part: Any) -> Any:
        if isinstance(part, Q):
            return rewritten(part, replace)
        return replace(*part) if isinstance(part, tuple) else part

    children = map(part_of, condition.children)
    return Q(*children, _connector=condition.connector, _negated=condition.negated)
