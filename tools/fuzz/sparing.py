"""Hooks of the short run: values shared by many operations are tried in a single operation.

The service parses a field, a parameter and a body's type in the same way everywhere. So each
operation gets each fault and each valid form of each of its fields; but of equivalent values, such
as 25 scopes or five wrong types, only those that no other operation got.
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

#: Django knows the first, the second is unknown; the views do not determine the response.
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
        # Without page tokens, some are equal (tools/fuzz/hooks.py).
        query = {k: v for k, v in (case.query or {}).items() if k != "page_token"}
        if not _is_first(context.operation.label, repr((case.path_parameters, query))):
            return False
    return _is_new(context.operation.label, about)


def _is_new(operation: str, about: Any) -> bool:
    """Return whether the case is new for the operation, or its form is new for all operations."""
    place = (str(about.scenario), str(about.parameter_location), str(about.parameter))
    here = (operation, *place, about.description)
    # Only the last part of "trust_policy -> binding -> cluster_id: Incorrect type", or of "Object
    # with valid 'api_key' value: Object with valid 'scopes' value: Enum value": other wrappers have
    # it too.
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
