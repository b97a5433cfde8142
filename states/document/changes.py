"""Descriptions of changes for the API: paths of attributes, with their values before and after."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from states.document import format4, masking, sensitive_paths
from states.document.answers import (
    AttributeChange,
    ChangeAction,
    MetadataChange,
    OutputChange,
    ResourceChange,
)
from states.document.difference import differs, facts, raw_differs
from states.document.hidden import MASK, Hidden
from states.document.sensitive_paths import below, extended

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from states.document.difference import Change, Found
    from states.document.format4 import Output
    from states.document.secret_values import Secrets
    from states.document.sensitive_paths import Marks
    from states.document.work_limit import Effort


def describe_resource(change: Change, secrets: Secrets | None, effort: Effort) -> ResourceChange:
    """Return a change of a resource in API form, without the values that ``secrets`` hide."""
    resource, instance = change.after or change.before
    attributes: list[AttributeChange] = []
    metadata: list[MetadataChange] = []
    if change.action is ChangeAction.CHANGED:
        attributes, metadata = _inside(change.before, change.after, secrets, effort)
    return ResourceChange(
        address=change.address,
        deposed=change.deposed,
        module=resource.module or None,
        mode=resource.mode,
        type=resource.type,
        name=resource.name,
        index_key=instance.index_key,
        action=change.action,
        attributes=attributes,
        metadata=metadata,
    )


#: A decoded value, which may be absent, and the marks of its sensitive parts.
Side = tuple[Any, "Marks"]


def _inside(
    before: Found, after: Found, secrets: Secrets | None, effort: Effort
) -> tuple[list[AttributeChange], list[MetadataChange]]:
    """Return the changed attributes and other changed members of an instance."""
    instances = before[1], after[1]
    changed = facts(before, after, effort)
    sides: list[Side] = [
        (values, sensitive_paths.marks_of(instance, values, effort))
        for instance in instances
        for values in [format4.decode(instance.values, effort)]
    ]
    # Masked together, so that a short value of a marked attribute is also hidden in the identity.
    sides += [(identity, {}) for identity in changed.get("identity", ())]
    old, new, *identities = _shown(secrets, sides)
    shown = {
        **changed,
        "identity": [identity for identity, _ in identities],
        "private": [None if side is None else MASK for side in changed.get("private", ())],
        "sensitive_attributes": [
            [text for text, _steps in side] for side in changed.get("sensitive_attributes", ())
        ],
    }
    metadata = [MetadataChange(name, *shown[name]) for name in changed]
    return _Changes(effort).between("", old, new), metadata


def _shown(secrets: Secrets | None, sides: Sequence[Side]) -> Iterable[Side]:
    if secrets is None:
        return sides
    shown = masking.masked(secrets, *sides)
    return [(value, marked) for value, (_, marked) in zip(shown, sides, strict=True)]


def describe_output(change: Change, secrets: Secrets | None, effort: Effort) -> OutputChange:
    """Return a change of an output in API form, without the values that ``secrets`` hide."""
    before: Output | None = change.before
    after: Output | None = change.after
    attributes: list[AttributeChange] = []
    metadata: list[MetadataChange] = []
    if before is not None and after is not None:
        outputs = before, after
        marked: Marks = True if before.sensitive or after.sensitive else {}
        sides = [(format4.decode(output.value, effort), marked) for output in outputs]
        attributes = _Changes(effort).between("value", *_shown(secrets, sides))
        if before.sensitive != after.sensitive:
            metadata.append(MetadataChange("sensitive", before.sensitive, after.sensitive))
        if raw_differs(before.type, after.type, effort):
            kinds = [masking.show_output(output, secrets, effort).type for output in outputs]
            metadata.append(MetadataChange("type", *kinds))
        if raw_differs(before.deprecated, after.deprecated, effort):
            messages: list[Side] = [
                (format4.decode(output.deprecated, effort), {}) for output in outputs
            ]
            shown = (message for message, _ in _shown(secrets, messages))
            metadata.append(MetadataChange("deprecated", *shown))
    return OutputChange(change.address, change.action, attributes, metadata)


_ABSENT: Final = object()
#: The cost of a change in steps. A change has about 500 bytes in addition to its path.
_COST: Final = 5
_PATH_BYTES_A_STEP: Final = 50


class _Changes:
    """The collected changes within an attribute or an output. There may be a million changes."""

    def __init__(self, effort: Effort) -> None:
        self._effort = effort
        self._found: list[AttributeChange] = []

    def between(self, path: str, before: Side, after: Side) -> list[AttributeChange]:
        """Return the innermost changed values. Hidden values are compared as a whole."""
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
                AttributeChange(
                    path=path,
                    action=ChangeAction.of(old, new, _ABSENT),
                    before=_or_mask(old, hidden=hidden),
                    after=_or_mask(new, hidden=hidden),
                    sensitive=hidden or True in (old_marks, new_marks),
                )
            )

    def _compare_dynamic(self, path: str, before: Side, after: Side) -> None:
        """Compare values that are wrapped with their types. The wrapper is not part of a path."""
        (old, old_marks), (new, new_marks) = before, after
        found = len(self._found)
        for key, inner in (("value", path), ("type", extended(path, "type"))):
            sides = (old[key], below(old_marks, key)), (new[key], below(new_marks, key))
            self._compare(inner, *sides)
            if len(self._found) > found:
                return  # a change of the type is reported only if the value is equal


def _or_mask(value: Any, *, hidden: bool) -> Any:
    if value is _ABSENT:
        return None
    return MASK if hidden else value


def _pairs(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any, Any]] | None:
    """Return the pairs of members of two objects or two lists, or None for other values."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = dict.fromkeys([*before, *after])
        return ((extended(path, k), k, before.get(k, _ABSENT), after.get(k, _ABSENT)) for k in keys)
    if isinstance(before, list) and isinstance(after, list):
        sides = zip_longest(before, after, fillvalue=_ABSENT)
        return ((extended(path, i), i, old, new) for i, (old, new) in enumerate(sides))
    return None
