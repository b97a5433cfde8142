"""The Kubernetes object of a resource, by which workloads are joined with it.

Only managed resources count: a data source reads an object that it does not create. A state does
not name its cluster; a uid is unique over all clusters, a Helm release is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from states.models.resources import MOST_OF_OBJECT

if TYPE_CHECKING:
    from states.document.format4 import Resource

#: The types of hashicorp/kubernetes that are a workload. Its kubernetes_manifest keeps no uid.
_WORKLOADS: Final = frozenset({
    "kubernetes_deployment", "kubernetes_deployment_v1",
    "kubernetes_stateful_set", "kubernetes_stateful_set_v1",
    "kubernetes_daemonset", "kubernetes_daemon_set_v1",
})  # fmt: skip
_RELEASE: Final = "helm_release"


def cluster_object(resource: Resource, attributes: dict[str, Any]) -> str | None:
    """Return the uid of a workload, or ``namespace/name`` of a Helm release; else None.

    No uid contains a slash, so the two forms are distinct. ``attributes`` contain no hidden value.
    """
    if resource.mode != "managed":
        return None
    found = None
    if resource.type in _WORKLOADS:
        metadata = attributes.get("metadata")
        if isinstance(metadata, list) and metadata and isinstance(metadata[0], dict):
            found = metadata[0].get("uid")
    elif resource.type == _RELEASE:
        # Of the attributes: ``metadata`` is a list in version 2 of the provider, an object in 3.
        namespace, name = attributes.get("namespace"), attributes.get("name")
        if isinstance(namespace, str) and isinstance(name, str):
            found = f"{namespace}/{name}"
    is_valid = isinstance(found, str) and 0 < len(found) <= MOST_OF_OBJECT and "\0" not in found
    return found if is_valid else None
