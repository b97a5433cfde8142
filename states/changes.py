"""A change as it is shown: which attribute paths changed, and from what to what."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from states import marks, masking, terraform
from states.difference import Action, differs, metadata, raw_differs
from states.marks import below, extended
from states.masking import MASK, Mask, Secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from states.difference import Change
    from states.marks import Marks
    from states.terraform import Instance, Output


def describe(change: Change, secrets: Secrets | None) -> dict[str, Any]:
    """Return a change as it is shown, without what ``secrets`` hide."""
    if change.of_output:
        return _describe_output(change, secrets)
    before, after = change.before, change.after
    resource, instance = after or before
    changed = change.action is Action.CHANGED
    return {
        "address": change.address,
        "deposed": change.deposed,
        "module": resource.module or None,
        "mode": resource.mode,
        "type": resource.type,
        "name": resource.name,
        "index_key": instance.index_key,
        "action": change.action,
        "attributes": _attributes(before[1], after[1], secrets) if changed else [],
        "metadata": metadata(before, after) if changed else [],
    }


def _attributes(before: Instance, after: Instance, secrets: Secrets | None) -> list[dict[str, Any]]:
    old, new = terraform.decode(before.values), terraform.decode(after.values)
    sides = (old, marks.marks_of(before, old)), (new, marks.marks_of(after, new))
    return list(_changes("", *sides, masking.mask_of_instance(secrets, *sides)))


def _describe_output(change: Change, secrets: Secrets | None) -> dict[str, Any]:
    before: Output | None = change.before
    after: Output | None = change.after
    attributes: list[dict[str, Any]] = []
    facts: list[dict[str, Any]] = []
    if before is not None and after is not None:
        marked: Marks = True if before.sensitive or after.sensitive else {}
        old, new = terraform.decode(before.value), terraform.decode(after.value)
        attributes = list(_changes("value", (old, marked), (new, marked), Mask(secrets)))
        if before.sensitive != after.sensitive:
            flags = {"before": before.sensitive, "after": after.sensitive}
            facts.append({"field": "sensitive", **flags})
        if raw_differs(before.type, after.type):
            kinds = [masking.show_output(output, secrets)[1] for output in (before, after)]
            facts.append({"field": "type", "before": kinds[0], "after": kinds[1]})
    return {
        "name": change.address,
        "action": change.action,
        "attributes": attributes,
        "metadata": facts,
    }


_ABSENT: Final = object()

#: A decoded value, or that there is none, and where it is marked.
Side = tuple[Any, "Marks"]


def _changes(path: str, before: Side, after: Side, mask: Mask) -> Iterator[dict[str, Any]]:
    """Yield the deepest places that changed; one that is hidden is not looked into."""
    (old, old_marks), (new, new_marks) = before, after
    hidden = mask.hides(old, old_marks) or mask.hides(new, new_marks)
    pairs = None if hidden else _pairs(path, old, new)
    if pairs is not None:
        for inner, key, left, right in pairs:
            sides = (left, below(old_marks, key)), (right, below(new_marks, key))
            yield from _changes(inner, *sides, mask)
    elif differs(old, new):
        yield {
            "path": path,
            "action": _action(old, new),
            "before": _shown(before, mask, hidden=hidden),
            "after": _shown(after, mask, hidden=hidden),
            "sensitive": hidden or True in (old_marks, new_marks),
        }


def _shown(side: Side, mask: Mask, *, hidden: bool) -> Any:
    value, marked = side
    if value is _ABSENT:
        return None
    return MASK if hidden else mask.apply(value, marked)


def _pairs(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any, Any]] | None:
    """Return what two containers of one kind hold, side by side; None where they are none."""
    if marks.is_dynamic(before) and marks.is_dynamic(after):
        # The wrapper is no part of a path; its type matters where it alone has changed.
        key = "value" if differs(before["value"], after["value"]) else "type"
        inner = path if key == "value" else extended(path, key)
        return iter([(inner, key, before[key], after[key])])
    if isinstance(before, dict) and isinstance(after, dict):
        keys = dict.fromkeys([*before, *after])
        return ((extended(path, k), k, before.get(k, _ABSENT), after.get(k, _ABSENT)) for k in keys)
    if isinstance(before, list) and isinstance(after, list):
        sides = zip_longest(before, after, fillvalue=_ABSENT)
        return ((extended(path, i), i, old, new) for i, (old, new) in enumerate(sides))
    return None


def _action(before: Any, after: Any) -> Action:
    if before is _ABSENT:
        return Action.ADDED
    return Action.REMOVED if after is _ABSENT else Action.CHANGED
