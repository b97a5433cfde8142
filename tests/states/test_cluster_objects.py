"""References from resources in a state to Kubernetes objects, as stored in the index."""

from __future__ import annotations

from typing import Any

import pytest

from states.models import ResourceEntry
from tests.states.conftest import Backend
from tests.states.indexed import index
from tests.states.samples import instance, path, resource, state

UID = "7f1d5bb2-8f43-4e0b-9d6c-0a4f2f5a6c11"


def deployment(uid: Any = UID) -> dict[str, Any]:
    """Return attributes as hashicorp/kubernetes 2 writes them: blocks are lists."""
    metadata = {
        "annotations": {}, "generate_name": "", "generation": 1, "labels": {"app": "web"},
        "name": "web", "namespace": "shop", "resource_version": "4711", "uid": uid,
    }  # fmt: skip
    return {"id": "shop/web", "metadata": [metadata], "spec": [{"replicas": "2"}]}


def release(**given: Any) -> dict[str, Any]:
    """Return attributes as hashicorp/helm 3 writes them; in version 2 ``metadata`` is a list."""
    metadata = {"name": "ingress", "namespace": "edge", "chart": "ingress-nginx", "revision": 3}
    usual = {"id": "ingress", "name": "ingress", "namespace": "edge", "metadata": metadata}
    return {**usual, **given}


KINDS = ("deployment", "deployment_v1", "stateful_set", "stateful_set_v1", "daemonset",
         "daemon_set_v1")  # fmt: skip

CASES: list[tuple[str, dict[str, Any], dict[str, Any], str | None]] = [
    *((f"kubernetes_{kind}", deployment(), {}, UID) for kind in KINDS),
    ("helm_release", release(), {}, "edge/ingress"),
    ("helm_release", release(metadata=[{"name": "ingress", "namespace": "edge"}]), {},
     "edge/ingress"),
    # A data source: the object is read, not managed.
    ("kubernetes_deployment_v1", deployment(), {"mode": "data"}, None),
    # No workload.
    ("kubernetes_service_v1", deployment(), {}, None),
    ("thing", deployment(), {}, None),
    ("kubernetes_manifest", {"object": {"value": {"metadata": {"uid": UID}}}}, {}, None),
    # Values that no provider writes.
    *(("kubernetes_deployment_v1", deployment(uid), {}, None)
      for uid in (None, "", 7, ["x"], "x" * 318, "a\0b")),
    *(("kubernetes_deployment_v1", {"metadata": metadata}, {}, None)
      for metadata in (None, [], {}, "x", ["x"])),
    ("helm_release", release(namespace=None), {}, None),
    ("helm_release", release(name=7), {}, None),
    ("helm_release", release(name="x" * 400), {}, None),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "attributes", "more", "kept"), CASES)
def test_cluster_objects_are_stored(
    backend: Backend, kind: str, attributes: dict[str, Any], more: dict[str, Any], kept: str | None
) -> None:
    backend.push(state(resource("x", instance(attributes), type=kind, **more)))
    index()

    assert ResourceEntry.objects.get().cluster_object == kept


def test_sensitive_attributes_are_not_stored(backend: Backend) -> None:
    hidden = path("metadata", 0, "uid")
    backend.push(
        state(
            resource("x", instance(deployment(), hidden), type="kubernetes_deployment_v1"),
            resource("y", instance(release(), path("name")), type="helm_release"),
        )
    )
    index()

    assert [entry.cluster_object for entry in ResourceEntry.objects.all()] == [None, None]


def test_it_follows_the_state(backend: Backend) -> None:
    def push(serial: int, uid: str) -> None:
        thing = resource("x", instance(deployment(uid)), type="kubernetes_deployment_v1")
        backend.push(state(thing, serial=serial))
        index()

    push(1, "one")
    push(2, "two")

    assert [entry.cluster_object for entry in ResourceEntry.objects.all()] == ["two"]
