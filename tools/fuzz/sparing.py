"""The hooks of the short run: what many operations share is tried with each value in one of them.

The service reads a field, a parameter and a body's type in one way wherever it occurs. So each
operation is sent each fault and each right form of each of its fields; but of the values that do
the same, 25 scopes or five wrong types, those alone that no other operation was sent there.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import schemathesis
from schemathesis.core import NOT_SET
from schemathesis.generation.meta import TestPhase

# Loaded for the hooks in it.
import tools.fuzz.hooks  # noqa: F401

#: Django knows the one, and nothing knows the other; which of those is answered no view says.
_NO_VIEWS_METHODS = {"TRACE", "QUERY"}

_counts: Counter[tuple[str, ...]] = Counter()
_seen: set[tuple[object, ...]] = set()


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """Say whether the case is to be sent."""
    if case.meta.phase.name != TestPhase.COVERAGE:
        return True
    about = case.meta.phase.data
    if case.method in _NO_VIEWS_METHODS:
        return _is_first(case.method)
    if case.meta.generation.mode.is_positive and case.body is NOT_SET:
        # Without the token of another page, some are the same (tools/fuzz/hooks.py).
        query = {k: v for k, v in (case.query or {}).items() if k != "page_token"}
        if not _is_first(context.operation.label, repr((case.path_parameters, query))):
            return False
    return _is_new(context.operation.label, about)


def _is_new(operation: str, about: Any) -> bool:
    """Say whether the operation has not been sent this, or nobody in this form."""
    place = (str(about.scenario), str(about.parameter_location), str(about.parameter))
    here = (operation, *place, about.description)
    # Of "trust_policy -> binding -> cluster_id: Incorrect type", or "Object with valid 'api_key'
    # value: Object with valid 'scopes' value: Enum value", the last: other wrappers have it too.
    *outer, field = re.split(r" -> | value: ", about.description)
    _counts[here] += 1
    nowhere_yet = _is_first(*place[:2], *outer[1:], field, _counts[here])
    if about.description.startswith("Malformed Content-Type"):
        return nowhere_yet
    return nowhere_yet or _counts[here] == 1


def _is_first(*what: object) -> bool:
    is_new = what not in _seen
    _seen.add(what)
    return is_new
