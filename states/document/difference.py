"""What changed between two state documents: by resource address, and by output.

Finding what differs compares the bytes of the two and decodes only where they are unequal; what
exactly changed is told of one page at a time.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from states.document import format4, masking, sensitive_paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgspec import Raw

    from states.document.effort import Effort
    from states.document.format4 import Document, Instance, Resource
    from states.document.secret_values import Secrets


class Action(enum.StrEnum):
    """What became of a resource, an output or an attribute."""

    ADDED = "ADDED"
    CHANGED = "CHANGED"
    REMOVED = "REMOVED"


@dataclass(frozen=True, slots=True)
class Change:
    """A resource or output that differs: ``before`` or ``after`` is None where it is absent."""

    name: str
    index_key: int | str | None
    deposed: str | None
    before: Any
    after: Any

    @property
    def address(self) -> str:
        """Its name, or address. A block's is shared by its instances, and may be long."""
        return self.name + format4.index_text(self.index_key)

    @property
    def action(self) -> Action:
        if self.before is None:
            return Action.ADDED
        return Action.REMOVED if self.after is None else Action.CHANGED

    @property
    def of_output(self) -> bool:
        """Whether it is an output; else it is a resource."""
        return not isinstance(self.before or self.after, tuple)


Found = tuple["Resource", "Instance"]
#: The address of a block, the key of an instance, and the name of a deposed object.
Key = tuple[str, int | str | None, str | None]
_NO_DOCUMENT: Final = format4.Document()


@dataclass(frozen=True, slots=True)
class Difference:
    """All changes, outputs first, each kind in the order of its addresses."""

    outputs: list[Change]
    resources: list[Change]
    secrets: Secrets | None

    @property
    def summary(self) -> dict[str, dict[str, int]]:
        """How many there are of each kind."""
        return {
            "outputs": _counts(self.outputs),
            "resources": _counts(self.resources),
        }


def compare(before: Document | None, after: Document, *, hide: bool, effort: Effort) -> Difference:
    """Return the difference; ``hide`` collects what must not be shown of it.

    Raises:
        StateFormatUnsupported: one of them is not what format 4 allows.
        StateTooComplex: it would take too long.
    """
    before = before or _NO_DOCUMENT
    secrets = masking.secrets_of(effort, before, after) if hide else None
    return Difference(_outputs(before, after, effort), _resources(before, after, effort), secrets)


def _outputs(before: Document, after: Document, effort: Effort) -> list[Change]:
    old, new = before.outputs or {}, after.outputs or {}
    changes = (
        Change(name, None, None, old.get(name), new.get(name))
        for name in sorted(old.keys() | new.keys())
    )
    return [c for c in changes if c.action is not Action.CHANGED or _output_changed(c, effort)]


def _output_changed(change: Change, effort: Effort) -> bool:
    before, after = change.before, change.after
    pairs = (before.value, after.value), (before.type, after.type)
    return before.sensitive != after.sensitive or any(raw_differs(*p, effort) for p in pairs)


def _resources(before: Document, after: Document, effort: Effort) -> list[Change]:
    old = dict(_by_address(before, effort))
    changes = []
    for key, found in dict(_by_address(after, effort)).items():
        earlier = old.pop(key, None)
        if earlier is None or _instance_changed(earlier, found, effort):
            changes.append(Change(*key, earlier, found))
    changes += [Change(*key, found, None) for key, found in old.items()]
    return sorted(changes, key=_place)


def _place(change: Change) -> tuple[Any, ...]:
    """Return what changes are ordered by: their addresses, in which ``[2]`` is before ``[10]``."""
    key = change.index_key
    number, text = (key, "") if isinstance(key, int) else (0, key or "")
    return (
        change.name,
        key is not None,
        not isinstance(key, int),
        number,
        text,
        change.deposed or "",
    )


def _by_address(document: Document, effort: Effort) -> Iterator[tuple[Key, Found]]:
    for resource in document.resources or ():
        block = resource.block
        effort.spend(1 + len(resource.instances))
        for instance in resource.instances:
            yield (block, instance.index_key, instance.deposed or None), (resource, instance)


def _instance_changed(before: Found, after: Found, effort: Effort) -> bool:
    return raw_differs(before[1].values, after[1].values, effort) or bool(
        metadata(before, after, effort)
    )


def raw_differs(before: Raw, after: Raw, effort: Effort) -> bool:
    """Whether two values of documents are unequal; they are decoded only if their bytes are."""
    return before != after and differs(
        format4.decode(before, effort), format4.decode(after, effort), effort
    )


def differs(before: Any, after: Any, effort: Effort) -> bool:
    """Whether two values are unequal as JSON: ``true`` is not 1, and 1.0 is 1."""
    # Python's comparison, which takes 1 for true, finds most differences, and a hundred times
    # faster.
    return bool(before != after) or _differs_in_kind(before, after, effort)


def _differs_in_kind(before: Any, after: Any, effort: Effort) -> bool:
    """Whether one of two values that are equal in Python has a boolean for a number."""
    effort.spend(1)
    if isinstance(before, dict) and isinstance(after, dict):
        return any(_differs_in_kind(before[key], after[key], effort) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return any(_differs_in_kind(a, b, effort) for a, b in zip(before, after, strict=True))
    return isinstance(before, bool) != isinstance(after, bool)


def _facts(found: Found, effort: Effort) -> dict[str, Any]:
    """Return what is known of an instance beside its attributes; what orders nothing, sorted."""
    resource, instance = found
    return {
        "provider": resource.provider,
        "status": instance.status or None,
        "schema_version": instance.schema_version,
        "create_before_destroy": instance.create_before_destroy,
        "dependencies": sorted(format4.dependencies(instance, effort)),
        "sensitive_attributes": sorted(
            map(sensitive_paths.path_text, sensitive_paths.paths(instance, effort))
        ),
    }


def metadata(before: Found, after: Found, effort: Effort) -> list[dict[str, Any]]:
    """Return which facts changed, and how."""
    if _same_facts(*before, *after):
        return []
    old, new = _facts(before, effort), _facts(after, effort)
    return [
        {"field": name, "before": old[name], "after": new[name]}
        for name in old
        if old[name] != new[name]
    ]


def _same_facts(old_in: Resource, old: Instance, new_in: Resource, new: Instance) -> bool:
    """Whether all facts are written the same, which decides most pairs without decoding."""
    return (
        old_in.provider == new_in.provider
        and old.status == new.status
        and old.schema_version == new.schema_version
        and old.create_before_destroy == new.create_before_destroy
        and old.dependencies == new.dependencies
        and old.sensitive_attributes == new.sensitive_attributes
    )


def _counts(changes: list[Change]) -> dict[str, int]:
    return {action.lower(): sum(change.action is action for change in changes) for action in Action}
