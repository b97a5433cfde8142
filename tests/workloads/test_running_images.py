"""The images that the pods of a workload run: from their statuses to the workload's page."""

from __future__ import annotations

import json
from typing import Any

from tests.conftest import ApiClient, ClientWith
from tests.workloads.agent import Agent, violations
from tests.workloads.kubernetes.objects import raw_pod, status
from tests.workloads.records import at
from tests.workloads.snapshots import tally_pods
from workloads.kubernetes.reduce import reduce_pod
from workloads.models import Cluster

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def pod(image: str, image_id: str | None, **fields: Any) -> Any:
    image_fields = {} if image_id is None else {"imageID": image_id}
    raw = raw_pod(containerStatuses=[status(**image_fields, **fields)])
    raw["spec"]["containers"][0]["image"] = image
    return reduce_pod(raw)


def running(*pods: Any) -> list[str]:
    return sorted(tally_pods(pods).containers["app"].running)


def test_running_images_of_pods_are_stored() -> None:
    same = [pod("app:1", f"docker.io/library/app@{A}") for _ in range(3)]

    assert running(*same) == [f"app:1@{A}"]
    # During a rollout, and where a tag has moved.
    assert running(*same, pod("app:2", B)) == [f"app:1@{A}", f"app:2@{B}"]
    assert running(*same, pod("app:1", f"docker-pullable://app@{B}")) == [
        f"app:1@{A}", f"app:1@{B}"
    ]  # fmt: skip


def test_unknown_images_are_omitted() -> None:
    assert running(pod("app:1", None), pod("app:1", ""), pod("app:1", "app:1")) == []
    assert running(pod("", A)) == []
    for odd in (7, None, [], {"a": 1}):
        assert running(pod("app:1", None, imageID=odd)) == []


def test_a_sidecar_has_an_image_too() -> None:
    raw = raw_pod(initContainerStatuses=[status("mesh", imageID=A)])
    sidecar = {"name": "mesh", "image": "envoy:1", "restartPolicy": "Always"}
    raw["spec"]["initContainers"] = [sidecar]
    mesh = reduce_pod(raw)

    assert mesh is not None
    assert [container.running for container in mesh.containers] == [f"envoy:1@{A}"]


def item(**fields: Any) -> dict[str, Any]:
    return {"namespace": "shop", "name": "web", "kind": "Deployment", **fields}


def put(agent: Agent, seconds: float, *items: dict[str, Any]) -> Any:
    body = {"reported_at": at(seconds).isoformat(), "workloads": items}
    return agent.put(json.dumps(body).encode())


def shown(client: ApiClient, cluster: Cluster) -> Any:
    path = f"/api/v1/clusters/{cluster.pk}/workloads"
    (workload,) = client.items(path, "workloads")
    return workload["containers"]


def test_agent_reports_running_images(
    agent: Agent, client_with: ClientWith, cluster: Cluster
) -> None:
    reader = client_with("cluster:read")
    container = {"name": "app", "image": "web:1", "restart_count": 0, "state": "running"}
    ready = {**container, "ready": True}
    reference = f"web:1@{A}"

    # An agent that does not report it, as earlier agents.
    assert put(agent, 0, item(containers=[ready])).status_code == 200
    assert shown(reader, cluster) == [ready]
    with_digest = item(containers=[{**ready, "running": [reference]}])
    assert put(agent, 1, with_digest).json()["report"]["updated"] == 1
    assert shown(reader, cluster) == [{**ready, "running": [reference]}]
    assert put(agent, 2, with_digest).json()["report"]["unchanged"] == 1


def test_it_follows_from_the_pods(agent: Agent, client_with: ClientWith, cluster: Cluster) -> None:
    pods = [
        {
            "name": f"web-{number}",
            "phase": "Running",
            "containers": [
                {"name": "app", "state": "running", "image": "web:1", "image_id": image_id}
            ],
        }
        for number, image_id in enumerate((A, f"docker.io/library/web@{B}", "", A))
    ]
    reported = item(containers=[{"name": "app", "image": "web:1"}], pods=pods, replicas_desired=4)
    assert put(agent, 0, reported).status_code == 200

    (container,) = shown(client_with("cluster:read"), cluster)
    assert container["running"] == [f"web:1@{A}", f"web:1@{B}"]


def test_invalid_running_images_are_rejected(agent: Agent) -> None:
    def refused(running: Any) -> list[tuple[str, str]]:
        container = {"name": "app", "image": "web:1", "running": running}
        return violations(put(agent, 0, item(containers=[container])))

    assert refused("web:1") == [("workloads.0.containers.0.running", "INVALID")]
    assert refused(["a\0"]) == [("workloads.0.containers.0.running.0", "INVALID_FORMAT")]
    assert refused(["a"] * 21) == [("workloads.0.containers.0.running", "OUT_OF_RANGE")]
