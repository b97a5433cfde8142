"""Hooks of the short run, which test a value that many operations share in only one of them.

The service parses fields, parameters and media types in the same way for all operations. Each
operation therefore receives each fault and each valid form of its fields. Of equivalent values,
such as 25 scopes or five wrong types, an operation receives only those that no other operation has
received.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import schemathesis
from schemathesis.core import NOT_SET
from schemathesis.generation.meta import TestPhase

# Imported for its hooks.
import tools.fuzz.hooks  # noqa: F401

#: Methods to which views do not respond. Django knows the first method, but not the second.
_NO_VIEWS_METHODS = {"TRACE", "QUERY"}

_counts: Counter[tuple[str, ...]] = Counter()
_seen: set[tuple[object, ...]] = set()


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """Return whether to send the case."""
    if case.meta.phase.name != TestPhase.COVERAGE:
        return True
    about = case.meta.phase.data
    if case.method in _NO_VIEWS_METHODS:
        return _is_first(case.method)
    if case.meta.generation.mode.is_positive and case.body is NOT_SET:
        # Without page tokens (see tools/fuzz/hooks.py), some cases are equal.
        query = {k: v for k, v in (case.query or {}).items() if k != "page_token"}
        if not _is_first(context.operation.label, repr((case.path_parameters, query))):
            return False
    return _is_new(context.operation.label, about)


def _is_new(operation: str, about: Any) -> bool:
    """Return whether the case is new for the operation, or its form is new for all operations."""
    place = (str(about.scenario), str(about.parameter_location), str(about.parameter))
    here = (operation, *place, about.description)
    # Use only the last part of "trust_policy -> binding -> cluster_id: Incorrect type" or "Object
    # with valid 'api_key' value: Object with valid 'scopes' value: Enum value", because other
    # wrappers contain the same part.
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
