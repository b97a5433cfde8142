"""The pods of a watched cluster: 150,000 of them, so nothing of a pod is kept that others say."""

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
    """Facts by namespace and name, under which there is one pod at a time, and by owner.

    A pod takes its name and two entries of dictionaries, some 150 bytes; the facts are shared with
    every pod that is in the same state, and say neither key nor owner.
    """

    def __init__(self, server: ServerVersion = UNKNOWN_VERSION) -> None:
        self._server = server
        self._namespaces: dict[str, _Namespace] = {}

    def put(self, raw: JsonObject) -> set[str]:
        """Take a pod that is new or changed; return the owners that this is news of."""
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
        """Drop a pod; return the owner that this is news of."""
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
        """Yield the pods of an owner, which are of its namespace, whatever others may claim."""
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
