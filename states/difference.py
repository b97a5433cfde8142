"""What changed between two state documents: by resource address, and by output.

Finding what differs compares the bytes of the two and decodes only where they are unequal; what
exactly changed is told of one page at a time.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from states import marks, masking, terraform
from states.masking import Secrets

if TYPE_CHECKING:
    from msgspec import Raw

    from states.terraform import Document, Instance, Resource


class Action(enum.StrEnum):
    """What became of a resource, an output or an attribute."""

    ADDED = "ADDED"
    CHANGED = "CHANGED"
    REMOVED = "REMOVED"


@dataclass(frozen=True, slots=True)
class Change:
    """A thing that differs: ``before`` and ``after`` are what it was, or None where it is not."""

    address: str
    deposed: str | None
    before: Any
    after: Any

    @property
    def action(self) -> Action:
        """What became of it."""
        if self.before is None:
            return Action.ADDED
        return Action.REMOVED if self.after is None else Action.CHANGED

    @property
    def of_output(self) -> bool:
        """Whether it is an output; else it is a resource."""
        return not isinstance(self.before or self.after, tuple)


Found = tuple["Resource", "Instance"]
_NO_DOCUMENT: Final = terraform.Document()


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


def compare(before: Document | None, after: Document, *, hide: bool) -> Difference:
    """Return the difference; ``hide`` collects what must not be shown of it.

    Raises:
        StateFormatUnsupported: one of them is not what format 4 allows.
    """
    before = before or _NO_DOCUMENT
    secrets = None
    if hide:
        secrets = Secrets()
        for document in (before, after):
            masking.collect(secrets, document)
    return Difference(_outputs(before, after), _resources(before, after), secrets)


def _outputs(before: Document, after: Document) -> list[Change]:
    old, new = before.outputs or {}, after.outputs or {}
    changes = [
        Change(name, None, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys())
    ]
    return [c for c in changes if c.action is not Action.CHANGED or _output_changed(c)]


def _output_changed(change: Change) -> bool:
    before, after = change.before, change.after
    return before.sensitive != after.sensitive or any(
        raw_differs(a, b) for a, b in ((before.value, after.value), (before.type, after.type))
    )


def _resources(before: Document, after: Document) -> list[Change]:
    old = _by_address(before)
    changes = []
    for key, found in _by_address(after).items():
        earlier = old.pop(key, None)
        if earlier is None or _instance_changed(*earlier, *found):
            changes.append(Change(*key, earlier, found))
    changes += [Change(*key, found, None) for key, found in old.items()]
    return sorted(changes, key=lambda change: (change.address, change.deposed or ""))


def _by_address(document: Document) -> dict[tuple[str, str | None], Found]:
    return {
        (address, instance.deposed or None): (resource, instance)
        for address, resource, instance in document.instances()
    }


def _instance_changed(
    old_resource: Resource, old: Instance, new_resource: Resource, new: Instance
) -> bool:
    return raw_differs(old.values, new.values) or bool(
        metadata((old_resource, old), (new_resource, new))
    )


def raw_differs(before: Raw, after: Raw) -> bool:
    """Whether two values of documents are unequal; they are decoded only if their bytes are."""
    return before != after and differs(terraform.decode(before), terraform.decode(after))


def differs(before: Any, after: Any) -> bool:
    """Whether two values are unequal as JSON: ``true`` is not 1, and 1.0 is 1."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() != after.keys() or any(differs(before[k], after[k]) for k in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) != len(after) or any(map(differs, before, after))
    return isinstance(before, bool) != isinstance(after, bool) or bool(before != after)


def _facts(found: Found) -> dict[str, Any]:
    """Return what is known of an instance beside its attributes; what orders nothing, sorted."""
    resource, instance = found
    return {
        "provider": resource.provider,
        "status": instance.status or None,
        "schema_version": instance.schema_version,
        "create_before_destroy": instance.create_before_destroy,
        "dependencies": sorted(terraform.dependencies(instance)),
        "sensitive_attributes": sorted(map(marks.path_text, marks.paths(instance))),
    }


def metadata(before: Found, after: Found) -> list[dict[str, Any]]:
    """Return which facts changed, and how."""
    if _same_facts(*before, *after):
        return []
    old, new = _facts(before), _facts(after)
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
