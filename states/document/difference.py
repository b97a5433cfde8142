"""Differences between two state documents: outputs, resources, check results, Terraform version.

Documents without a difference are equal in everything that Terraform or OpenTofu reads, except the
serial and lineage. The order of a list that represents a set is ignored. Absent, null and empty
members are equal, because Terraform and OpenTofu do not distinguish them.

Values are decoded only if their bytes differ. ``states.document.changes`` describes the changes on
a page.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from states.document import check_results, format4, masking, sensitive_paths
from states.document.address_text import index_text
from states.document.answers import (
    ChangeAction,
    ChangeCounts,
    DifferenceSummary,
    MetadataChange,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from msgspec import Raw

    from states.document.check_results import CheckChange
    from states.document.format4 import Document, Instance, Resource
    from states.document.secret_values import Secrets
    from states.document.work_limit import Effort


@dataclass(frozen=True, slots=True)
class Change:
    """A changed resource or output. An absent ``before`` or ``after`` is None."""

    name: str
    index_key: int | str | None
    deposed: str | None
    before: Any
    after: Any

    @property
    def address(self) -> str:
        """Return the name of the output, or the address of the resource instance.

        The address is composed on demand, because all instances of a block share its name, which
        can be long.
        """
        return self.name + index_text(self.index_key)

    @property
    def action(self) -> ChangeAction:
        return ChangeAction.of(self.before, self.after)


Found = tuple["Resource", "Instance"]
#: The address of a block, the key of an instance, and the name of a deposed object.
Key = tuple[str, int | str | None, str | None]
#: The document before the first version.
NO_DOCUMENT: Final = format4.Document()


@dataclass(frozen=True, slots=True)
class Difference:
    """All changes of each kind, ordered by address. ``metadata`` are changes of the document."""

    outputs: list[Change]
    resources: list[Change]
    check_results: list[CheckChange]
    metadata: list[MetadataChange]
    secrets: Secrets | None

    @property
    def summary(self) -> DifferenceSummary:
        """Return the numbers of changes of each kind."""
        return DifferenceSummary(
            outputs=_counts(self.outputs),
            resources=_counts(self.resources),
            check_results=_counts(self.check_results),
        )


def compare(before: Document, after: Document, *, hide: bool, effort: Effort) -> Difference:
    """Return the difference. With ``hide``, also collect the values that must be hidden.

    Raises:
        StateFormatUnsupported: a document violates format 4.
        StateTooComplex: the comparison exceeds the work limit.
    """
    secrets = masking.secrets_of(effort, before, after) if hide else None
    return Difference(
        _outputs(before, after, effort),
        compare_resources(before, after, effort),
        check_results.compare(before, after, effort),
        _metadata(before, after),
        secrets,
    )


def _metadata(before: Document, after: Document) -> list[MetadataChange]:
    old, new = before.terraform_version, after.terraform_version
    is_same = before is NO_DOCUMENT or old == new
    return [] if is_same else [MetadataChange("terraform_version", old, new)]


def _outputs(before: Document, after: Document, effort: Effort) -> list[Change]:
    old, new = before.outputs or {}, after.outputs or {}
    changes = (
        Change(name, None, None, old.get(name), new.get(name))
        for name in sorted(old.keys() | new.keys())
    )
    return [
        c for c in changes if c.action is not ChangeAction.CHANGED or _output_changed(c, effort)
    ]


def _output_changed(change: Change, effort: Effort) -> bool:
    before, after = change.before, change.after
    pairs = [
        (getattr(before, name), getattr(after, name)) for name in ("value", "type", "deprecated")
    ]
    return before.sensitive != after.sensitive or any(raw_differs(*p, effort) for p in pairs)


def compare_resources(before: Document, after: Document, effort: Effort) -> list[Change]:
    """Return the changes of resource instances, ordered by address.

    Raises:
        StateFormatUnsupported, StateTooComplex: see ``compare``.
    """
    old = dict(_by_address(before, effort))
    changes = []
    for key, found in dict(_by_address(after, effort)).items():
        earlier = old.pop(key, None)
        if earlier is None or _instance_changed(earlier, found, effort):
            changes.append(Change(*key, earlier, found))
    changes += [Change(*key, found, None) for key, found in old.items()]
    return sorted(changes, key=_place)


def _place(change: Change) -> tuple[Any, ...]:
    """Return the sort key of a change: its address, with ``[2]`` before ``[10]``."""
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
        instances = resource.instances
        effort.spend(1 + len(instances))
        for instance in instances:
            yield (block, instance.index_key, instance.deposed or None), (resource, instance)


def _instance_changed(before: Found, after: Found, effort: Effort) -> bool:
    (old_block, old), (new_block, new) = before, after
    blocks = (old_block, new_block)
    if old == new and len({(block.provider, block.each) for block in blocks}) == 1:
        return False  # equal bytes, which decides most pairs
    return raw_differs(old.values, new.values, effort) or bool(facts(before, after, effort))


def raw_differs(before: Raw, after: Raw, effort: Effort) -> bool:
    """Return whether two values of documents differ. Decode them only if their bytes differ."""
    return before != after and differs(
        format4.decode(before, effort), format4.decode(after, effort), effort
    )


def differs(before: Any, after: Any, effort: Effort) -> bool:
    """Return whether two values are unequal as JSON: ``true`` is not 1, and 1.0 is 1."""
    # Python's comparison treats 1 as true, but finds most differences a hundred times faster.
    return bool(before != after) or _differs_in_kind(before, after, effort)


def _differs_in_kind(before: Any, after: Any, effort: Effort) -> bool:
    """Return whether one of two values has a boolean where the other has an equal number."""
    effort.spend(1)
    if isinstance(before, dict) and isinstance(after, dict):
        return any(_differs_in_kind(before[key], after[key], effort) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return any(_differs_in_kind(a, b, effort) for a, b in zip(before, after, strict=True))
    return isinstance(before, bool) != isinstance(after, bool)


def facts(before: Found, after: Found, effort: Effort) -> dict[str, tuple[Any, Any]]:
    """Return the changed members of an instance, except attributes: the values before and after.

    A sensitive path consists of its text and its steps, because two paths can have the same text.
    """
    old, new = _facts(before, effort), _facts(after, effort)
    return {
        name: (value, new[name]) for name, value in old.items() if differs(value, new[name], effort)
    }


def _facts(found: Found, effort: Effort) -> dict[str, Any]:
    """Return the members of an instance, except its attributes. Unordered lists are sorted."""
    resource, instance = found
    return {
        "provider": resource.provider_of(instance),
        "each": resource.each or None,
        "status": instance.status or None,
        "schema_version": instance.schema_version or 0,
        "identity_schema_version": instance.identity_schema_version or 0,
        "identity": format4.decode(instance.identity, effort),
        "private": format4.decode(instance.private, effort) or None,
        "create_before_destroy": bool(instance.create_before_destroy),
        "skip_destroy": bool(instance.skip_destroy),
        "dependencies": sorted(format4.dependencies(instance.dependencies, effort)),
        "depends_on": sorted(format4.dependencies(instance.depends_on, effort)),
        "sensitive_attributes": sensitive_paths.texts_and_steps(instance, effort),
    }


def _counts(changes: Sequence[Change | CheckChange]) -> ChangeCounts:
    actions = Counter(change.action for change in changes)
    return ChangeCounts(*(actions[action] for action in ChangeAction))
