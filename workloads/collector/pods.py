"""The pods of a cluster. Only a few facts are kept of up to 150,000 pods."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from workloads.kubernetes.facts import PodKey
from workloads.kubernetes.raw import child, text
from workloads.kubernetes.reduce import reduce_pod
from workloads.kubernetes.resources import UNKNOWN_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workloads.kubernetes.facts import PodFacts
    from workloads.kubernetes.raw import JsonObject
    from workloads.kubernetes.resources import ServerVersion

_NOBODY: Final = PodKey("", "")


class PodTable:
    """The facts of pods, by namespace and name, and by owner.

    A pod requires about 150 bytes: its name and two dictionary entries. Pods in the same state
    share their facts, which exclude the key and the owner.
    """

    def __init__(self, server: ServerVersion = UNKNOWN_VERSION) -> None:
        self._server = server
        self._namespaces: dict[str, _Namespace] = {}

    def put(self, raw: JsonObject) -> set[str]:
        """Store a new or changed pod, and return the affected owners."""
        touched = self.remove(raw)
        pod = reduce_pod(raw, self._server)
        if pod is not None:
            (name_of_namespace, name), owner = pod.key, pod.owner_uid
            namespace = self._namespaces.setdefault(name_of_namespace, _Namespace())
            namespace.owners[name] = owner
            shared = _shared(dataclasses.replace(pod, key=_NOBODY, owner_uid=""))
            namespace.groups.setdefault(owner, {})[name] = shared
            touched.add(owner)
        return touched

    def remove(self, raw: JsonObject) -> set[str]:
        """Remove a pod, and return the affected owner."""
        metadata = child(raw, "metadata")
        name = text(metadata, "name")
        namespace = self._namespaces.get(text(metadata, "namespace"))
        owner = namespace.owners.pop(name, None) if namespace is not None else None
        if namespace is None or owner is None:
            return set()
        members = namespace.groups[owner]
        del members[name]
        if not members:
            del namespace.groups[owner]
        if not namespace.owners:
            del self._namespaces[text(metadata, "namespace")]
        return {owner}

    def of(self, namespace: str, owner: str) -> Iterator[tuple[PodKey, PodFacts]]:
        """Yield the pods of an owner. Ignore pods in other namespaces that name this owner."""
        found = self._namespaces.get(namespace)
        if found is not None:
            for name, facts in found.groups.get(owner, {}).items():
                yield PodKey(namespace, name), facts


class _Namespace:
    """The owner of each pod, and the pods of each owner."""

    __slots__ = ("groups", "owners")

    def __init__(self) -> None:
        self.owners: dict[str, str] = {}
        self.groups: dict[str, dict[str, PodFacts]] = {}


@lru_cache(maxsize=8192)
def _shared(facts: PodFacts) -> PodFacts:
    return facts
