"""The identity of a resource's Kubernetes object, by which workloads are joined with resources.

Only managed resources count, because a data source does not create its object. A state does not
contain the name of its cluster. The uid of a workload is unique across clusters, but the name of a
Helm release is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from states.models.resources import MOST_OF_OBJECT

if TYPE_CHECKING:
    from states.document.format4 import Resource

#: The resource types of hashicorp/kubernetes for workloads. kubernetes_manifest stores no uid.
_WORKLOADS: Final = frozenset({
    "kubernetes_deployment", "kubernetes_deployment_v1",
    "kubernetes_stateful_set", "kubernetes_stateful_set_v1",
    "kubernetes_daemonset", "kubernetes_daemon_set_v1",
})  # fmt: skip
_RELEASE: Final = "helm_release"


def cluster_object(resource: Resource, attributes: dict[str, Any]) -> str | None:
    """Return the uid of a workload, the ``namespace/name`` of a Helm release, or None.

    A uid contains no slash, so the two forms are distinct. ``attributes`` must not contain hidden
    values.
    """
    if resource.mode != "managed":
        return None
    found = None
    if resource.type in _WORKLOADS:
        found = metadata_of(attributes).get("uid")
    elif resource.type == _RELEASE:
        # Not from ``metadata``: it is a list in version 2 of the provider, and an object in 3.
        namespace, name = attributes.get("namespace"), attributes.get("name")
        if isinstance(namespace, str) and isinstance(name, str):
            found = f"{namespace}/{name}"
    is_valid = isinstance(found, str) and 0 < len(found) <= MOST_OF_OBJECT and "\0" not in found
    return found if is_valid else None


def metadata_of(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the ``metadata`` block of a Kubernetes object; empty for other objects."""
    blocks: Any = attributes.get("metadata")
    is_block = isinstance(blocks, list) and blocks and isinstance(blocks[0], dict)
    return blocks[0] if is_block else {}
