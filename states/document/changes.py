"""A change as it is shown: which attribute paths changed, and from what to what."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from states.document import format4, masking, sensitive_paths
from states.document.difference import Action, differs, metadata, raw_differs
from states.document.hidden import MASK, Hidden
from states.document.sensitive_paths import below, extended

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from states.document.difference import Change
    from states.document.effort import Effort
    from states.document.format4 import Instance, Output
    from states.document.secret_values import Secrets
    from states.document.sensitive_paths import Marks


def describe(change: Change, secrets: Secrets | None, effort: Effort) -> dict[str, Any]:
    """Return a change as it is shown, without what ``secrets`` hide."""
    if change.of_output:
        return _describe_output(change, secrets, effort)
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
        "attributes": _attributes(before[1], after[1], secrets, effort) if changed else [],
        "metadata": metadata(before, after, effort) if changed else [],
    }


#: A decoded value without what is hidden, or that there is none, and where it is marked.
Side = tuple[Any, "Marks"]


def _attributes(
    before: Instance, after: Instance, secrets: Secrets | None, effort: Effort
) -> list[dict[str, Any]]:
    sides = [
        (values, sensitive_paths.marks_of(instance, values, effort))
        for instance in (before, after)
        for values in [format4.decode(instance.values, effort)]
    ]
    return _Changes(effort).between("", *_shown(secrets, sides))


def _shown(secrets: Secrets | None, sides: Sequence[Side]) -> Iterable[Side]:
    if secrets is None:
        return sides
    shown = masking.masked(secrets, *sides)
    return [(value, marked) for value, (_, marked) in zip(shown, sides, strict=True)]


def _describe_output(change: Change, secrets: Secrets | None, effort: Effort) -> dict[str, Any]:
    before: Output | None = change.before
    after: Output | None = change.after
    attributes: list[dict[str, Any]] = []
    facts: list[dict[str, Any]] = []
    if before is not None and after is not None:
        marked: Marks = True if before.sensitive or after.sensitive else {}
        sides = [(format4.decode(output.value, effort), marked) for output in (before, after)]
        attributes = _Changes(effort).between("value", *_shown(secrets, sides))
        if before.sensitive != after.sensitive:
            flags = {"before": before.sensitive, "after": after.sensitive}
            facts.append({"field": "sensitive", **flags})
        if raw_differs(before.type, after.type, effort):
            kinds = [masking.show_output(output, secrets, effort)[1] for output in (before, after)]
            facts.append({"field": "type", "before": kinds[0], "after": kinds[1]})
    return {
        "name": change.address,
        "action": change.action,
        "attributes": attributes,
        "metadata": facts,
    }


_ABSENT: Final = object()
#: What a change costs, in steps: about 500 bytes beside its path.
_COST: Final = 5
_PATH_BYTES_A_STEP: Final = 50


class _Changes:
    """The changes within an attribute or an output, of which there may be a million."""

    def __init__(self, effort: Effort) -> None:
        self._effort = effort
        self._found: list[dict[str, Any]] = []

    def between(self, path: str, before: Side, after: Side) -> list[dict[str, Any]]:
        """Return the deepest places that changed; one that is hidden is not looked into."""
        self._compare(path, before, after)
        return self._found

    def _compare(self, path: str, before: Side, after: Side) -> None:
        (old, old_marks), (new, new_marks) = before, after
        self._effort.spend(1 + len(path) // _PATH_BYTES_A_STEP)
        hidden = isinstance(old, Hidden) or isinstance(new, Hidden)
        if not hidden and sensitive_paths.is_dynamic(old) and sensitive_paths.is_dynamic(new):
            self._compare_dynamic(path, before, after)
            return
        pairs = None if hidden else _pairs(path, old, new)
        if pairs is not None:
            for inner, key, left, right in pairs:
                sides = (left, below(old_marks, key)), (right, below(new_marks, key))
                self._compare(inner, *sides)
        elif differs(old, new, self._effort):
            self._effort.spend(_COST)
            self._found.append(
                {
                    "path": path,
                    "action": _action(old, new),
                    "before": _or_mask(old, hidden=hidden),
                    "after": _or_mask(new, hidden=hidden),
                    "sensitive": hidden or True in (old_marks, new_marks),
                }
            )

    def _compare_dynamic(self, path: str, before: Side, after: Side) -> None:
        """Compare values that stand with their types. The wrapper is no part of a path."""
        (old, old_marks), (new, new_marks) = before, after
        found = len(self._found)
        for key, inner in (("value", path), ("type", extended(path, "type"))):
            sides = (old[key], below(old_marks, key)), (new[key], below(new_marks, key))
            self._compare(inner, *sides)
            if len(self._found) > found:
                return  # the type matters where it alone has changed


def _or_mask(value: Any, *, hidden: bool) -> Any:
    if value is _ABSENT:
        return None
    return MASK if hidden else value


def _pairs(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any, Any]] | None:
    """Return what two containers of one kind hold, side by side; None where they are none."""
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
