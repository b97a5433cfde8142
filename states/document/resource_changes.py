"""Changes of resources between two documents, without the values of attributes.

Data sources are excluded, because Terraform only reads them. Deposed objects are also excluded,
because the replacement of the resource is already listed.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from states.document import format4
from states.document.difference import differs

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from states.document.difference import Change, Found
    from states.document.work_limit import Effort

_MANAGED: Final = "managed"
_TAINTED: Final = "tainted"
#: Maximum names of attributes per change, and characters of each name. Schemas have fewer, but a
#: document can contain any number.
MOST_ATTRIBUTES: Final = 100
_MOST_OF_NAME: Final = 100


class ResourceAction(enum.StrEnum):
    """The kind of a change of a resource."""

    ADDED = "ADDED"
    CHANGED = "CHANGED"
    REMOVED = "REMOVED"
    #: The address has another object, with another ``id``.
    REPLACED = "REPLACED"
    #: The object has another address.
    MOVED = "MOVED"
    #: The object is marked for replacement, by ``terraform taint`` or a failed creation.
    TAINTED = "TAINTED"


class ResourceChange(NamedTuple):
    """A change of a resource. ``attributes`` are the sorted names of changed attributes.

    ``previous_address`` is empty unless the resource was moved.
    """

    action: ResourceAction
    address: str
    previous_address: str
    type: str
    provider: str
    attributes: list[str]


def describe(changes: Iterable[Change], effort: Effort) -> list[ResourceChange]:
    """Return the changes of managed resources without values, in the same order.

    Raises:
        StateFormatUnsupported, StateTooComplex: see ``format4.decode``.
    """
    managed = [change for change in changes if _is_managed(change)]
    moves = _moves(managed, effort)
    origins = {id(removed) for removed in moves.values()}
    return [
        _described(change, moves.get(id(change)), effort)
        for change in managed
        if id(change) not in origins
    ]


def _is_managed(change: Change) -> bool:
    resource, _instance = change.after or change.before
    return resource.mode == _MANAGED and change.deposed is None


def _moves(changes: Iterable[Change], effort: Effort) -> dict[int, Change]:
    """Map the ``id()`` of each added change to the removal of the same object, if any.

    The object must be unique in both documents.
    """
    removed: dict[Hashable, list[Change]] = defaultdict(list)
    added: dict[Hashable, list[Change]] = defaultdict(list)
    for change in changes:
        if change.after is None:
            removed[_object(change.before, effort)].append(change)
        elif change.before is None:
            added[_object(change.after, effort)].append(change)
    return {
        id(new[0]): old[0]
        for found, new in added.items()
        if found is not None and len(new) == 1 and len(old := removed.get(found, [])) == 1
    }


def _object(found: Found, effort: Effort) -> Hashable:
    """Return the identity of an object: its type, with its id and ARN or all of its attributes.

    The id of many types is a name, which objects in two regions or accounts can share.
    """
    resource, instance = found
    values = format4.decode(instance.values, effort)
    if not values:
        return None
    id_, arn = _text_of(values, "id"), _text_of(values, "arn")
    return resource.type, (id_, arn) if id_ else bytes(instance.values)


def _text_of(values: Any, name: str) -> str:
    found = values.get(name) if isinstance(values, dict) else None
    return found if isinstance(found, str) else ""


def _described(change: Change, origin: Change | None, effort: Effort) -> ResourceChange:
    before = change.before if origin is None else origin.before
    resource, instance = change.after or change.before
    action, attributes = ResourceAction(change.action), []
    if before is not None and change.after is not None:
        old, new = (format4.decode(one[1].values, effort) for one in (before, change.after))
        attributes = _changed(old, new, effort)
        if origin is not None:
            action = ResourceAction.MOVED
        elif _text_of(old, "id") != _text_of(new, "id") and all(
            _text_of(side, "id") for side in (old, new)
        ):
            action = ResourceAction.REPLACED
        elif instance.status == _TAINTED and before[1].status != _TAINTED:
            action = ResourceAction.TAINTED
    return ResourceChange(
        action=action,
        address=resource.address(instance),
        previous_address="" if origin is None else origin.address,
        type=resource.type,
        provider=format4.provider_address(resource.provider_of(instance)),
        attributes=attributes,
    )


def _changed(old: Any, new: Any, effort: Effort) -> list[str]:
    """Return the names of the attributes that differ.

    In states from before Terraform 0.12, a name is a path, which can contain a key of a map. Only
    the beginning of the path is returned, because the key could be a secret.
    """
    if not isinstance(old, dict) or not isinstance(new, dict):
        return []
    names = {
        name.partition(".")[0][:_MOST_OF_NAME]
        for name in old.keys() | new.keys()
        if differs(old.get(name), new.get(name), effort)
    }
    return sorted(names)[:MOST_ATTRIBUTES]
