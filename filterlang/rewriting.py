"""Replacement of comparisons in conditions by equivalent comparisons."""

from collections.abc import Callable
from typing import Any

from django.db.models import Q


def rewritten(condition: Q, replace: Callable[[str, Any], Any]) -> Q:
    """Return the condition with each comparison replaced by ``replace(path, value)``.

    The replacement is a pair of a path and a value, or a boolean expression. Existing expressions
    stay unchanged.
    """

    def part_of(part: Any) -> Any:
        if isinstance(part, Q):
            return rewritten(part, replace)
        return replace(*part) if isinstance(part, tuple) else part

    children = map(part_of, condition.children)
    return Q(*children, _connector=condition.connector, _negated=condition.negated)
