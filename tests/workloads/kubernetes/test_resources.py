"""The scheduler's formula; cores in the cases are whole, so that they read easily."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.kubernetes.quantities import NANOS, to_bytes, to_millicores
from workloads.kubernetes.resources import ServerVersion, pod_resources


def container(
    requests: int | None = None, limits: int | None = None, **more: Any
) -> dict[str, Any]:
    resources: dict[str, Any] = {}
    if requests is not None:
        resources["requests"] = {"cpu": str(requests)}
    if limits is not None:
        resources["limits"] = {"cpu": str(limits)}
    return {"name": "c", "resources": resources, **more}


def sidecar(requests: int | None = None, limits: int | None = None) -> dict[str, Any]:
    return container(requests, limits, restartPolicy="Always")


def cpu(**spec: Any) -> tuple[int, int]:
    requests, limits, *others = pod_resources(spec, {})
    assert others == [0, 0, 0]
    return requests // NANOS, limits // NANOS


@pytest.mark.parametrize(
    ("spec", "requests", "limits"),
    [
        ({}, 0, 0),
        ({"containers": [container(1, 2), container(3)]}, 4, 2),
        # An ordinary init step runs alone: the dearer of the two counts, for each resource.
        ({"containers": [container(1, 9)], "initContainers": [container(5, 5)]}, 5, 9),
        ({"containers": [container(4)], "initContainers": [container(3), container(3)]}, 4, 0),
        # A sidecar runs beside the app, and beside the steps that come after it.
        ({"containers": [container(1)], "initContainers": [sidecar(2)]}, 3, 0),
        ({"containers": [container(1)], "initContainers": [sidecar(2), container(5)]}, 7, 0),
        ({"containers": [container(1)], "initContainers": [container(5), sidecar(2)]}, 5, 0),
        (
            {
                "containers": [container(1)],
                "initContainers": [sidecar(2), container(4), sidecar(3)],
            },
            *(6, 0),
        ),
        ({"containers": [container(1)], "initContainers": [sidecar(9, 9)]}, 10, 9),
        # Overhead comes on top, and limits nothing that is not limited.
        ({"containers": [container(1, 2)], "overhead": {"cpu": "1"}}, 2, 3),
        ({"containers": [container(1)], "overhead": {"cpu": "1"}}, 2, 0),
        # The resources of the pod as a whole replace the sum of its containers.
        (
            {
                "containers": [container(1, 2)],
                "resources": {"requests": {"cpu": "8"}, "limits": {"cpu": "9"}},
                "overhead": {"cpu": "1"},
            },
            *(9, 10),
        ),
        ({"containers": [container(3, 2)], "resources": {"requests": {"cpu": "1"}}}, 1, 2),
        ({"containers": [container(3)], "resources": {"requests": {"hugepages-2Mi": "1"}}}, 3, 0),
        # Malformed, null and negative values count as absent.
        ({"containers": [{"resources": {"requests": {"cpu": "1K"}}}, container(1)]}, 1, 0),
        ({"containers": [{"resources": {"requests": {"cpu": "-1"}}}, container(1)]}, 1, 0),
        ({"containers": [{"resources": {"requests": {"cpu": 5}}}, container(1)]}, 1, 0),
        ({"containers": [{"resources": None}, {}, None, container(1)]}, 1, 0),
        ({"containers": None, "initContainers": None, "overhead": None, "resources": None}, 0, 0),
    ],
)
def test_formula_matches(spec: dict[str, Any], requests: int, limits: int) -> None:
    assert cpu(**spec) == (requests, limits)


def test_each_resource_is_taken_by_itself() -> None:
    spec: dict[str, object] = {
        "containers": [
            {
                "resources": {
                    "requests": {"cpu": "250m", "memory": "64Mi", "ephemeral-storage": "3Gi"},
                    "limits": {"cpu": "1", "memory": "512Mi"},
                }
            },
            {"resources": {"requests": {"cpu": "100m", "memory": "100M"}}},
        ],
        "initContainers": [
            {"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "2", "memory": "32Mi"}}}
        ],
    }
    assert pod_resources(spec, {}) == (
        2 * NANOS,
        2 * NANOS,
        167_108_864 * NANOS,
        536_870_912 * NANOS,
        3 * 2**30 * NANOS,
    )


@given(
    st.lists(st.integers(0, 9), max_size=3),
    st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=5),
)
def test_is_the_dearest_moment_of_a_pods_life(
    apps: list[int], inits: list[tuple[bool, int]]
) -> None:
    # Simulated moment by moment: init containers start in sequence, steps end.
    moments, staying = [0], 0
    for stays, amount in inits:
        moments.append(staying + amount)
        staying += amount if stays else 0
    moments.append(staying + sum(apps))
    spec = {
        "containers": [container(amount) for amount in apps],
        "initContainers": [
            sidecar(amount) if stays else container(amount) for stays, amount in inits
        ],
    }
    assert Fraction(pod_resources(spec, {})[0], NANOS) == max(moments)


FIXTURES = Path(__file__).parents[1] / "fixtures" / "kubernetes-1.36"
SUMS = json.loads((FIXTURES / "pod-resources.json").read_text())["pods"]


@pytest.mark.parametrize("number", range(len(SUMS)))
def test_the_sums_of_kubernetes_own_code(number: int) -> None:
    """Also while pods are resized: the sums that Go computed of the same pods, as the scheduler
    does.
    """
    pod = SUMS[number]
    for status, expected in (({}, pod["by_spec"]), (pod["status"], pod["by_status"])):
        cpu_requests, cpu_limits, *memory, _storage = pod_resources(pod["spec"], status)
        memory_requests, memory_limits = map(to_bytes, memory)
        assert [
            to_millicores(cpu_requests),
            memory_requests,
            to_millicores(cpu_limits),
            memory_limits,
        ] == expected


V1_36, V1_37 = ServerVersion(1, 36), ServerVersion(1, 37)


def resized(name: str, requests: int, allocated: int | None, actual: int | None) -> Any:
    """Return a container and its status, in whole cores."""
    container_status: dict[str, Any] = {"name": name}
    if allocated is not None:
        container_status["allocatedResources"] = {"cpu": str(allocated)}
    if actual is not None:
        container_status["resources"] = {
            "requests": {"cpu": str(actual)},
            "limits": {"cpu": str(actual)},
        }
    return container(requests, requests) | {"name": name}, container_status


@pytest.mark.parametrize(
    ("containers", "condition", "older", "newer"),
    [
        # The example of kubernetes#140046.
        ([resized("a", 1, 2, 2), resized("b", 2, 1, 1)], None, 4, 3),
        ([resized("a", 1, 2, 3), resized("b", 2, 1, 1)], None, 5, 4),
        ([resized("a", 5, 2, 2), resized("b", 5, 1, 1)], None, 10, 10),
        ([resized("a", 5, 2, 2), resized("b", 5, 1, 1)], "Infeasible", 3, 3),
        ([resized("a", 5, 2, 1), resized("b", 5, 1, 4)], "Infeasible", 6, 5),
        # Actual amounts fall back to the allocated ones, and those to the desired ones.
        ([resized("a", 1, 2, None), resized("b", 2, None, None)], None, 3, 4),
        ([resized("a", 4, None, None)], "Infeasible", 4, 0),
        ([resized("a", 3, 3, 3), resized("b", 2, 2, 2)], None, 5, 5),
    ],
)
def test_resize_uses_the_formula_of_the_server_version(
    containers: list[Any], condition: str | None, older: int, newer: int
) -> None:
    spec = {"containers": [c for c, _ in containers]}
    status: dict[str, Any] = {
        "containerStatuses": [container_status for _, container_status in containers]
    }
    if condition:
        status["conditions"] = [{"type": "PodResizePending", "reason": condition}]

    found = [
        pod_resources(spec, status, server)[0] // NANOS
        for server in (ServerVersion(), V1_36, V1_37, ServerVersion(2, 0))
    ]

    assert found == [older, older, newer, newer]


def test_limits_use_the_formula_of_the_server_version() -> None:
    one, other = resized("a", 1, 2, 2), resized("b", 2, 1, 1)
    spec = {"containers": [one[0], other[0]]}
    status = {"containerStatuses": [one[1], other[1]]}
    assert pod_resources(spec, status, V1_36)[1] == 4 * NANOS
    assert pod_resources(spec, status, V1_37)[1] == 3 * NANOS
    status |= {"resize": "Infeasible", "containerStatuses": [one[1]]}
    assert pod_resources(spec, status, V1_37)[1] == 2 * NANOS


def test_init_steps_use_the_formula_of_the_server_version() -> None:
    step, container_status = resized("step", 3, 6, None)
    spec = {"containers": [container(1)], "initContainers": [step]}
    status = {"initContainerStatuses": [container_status]}
    assert pod_resources(spec, status, V1_36)[0] == 3 * NANOS
    assert pod_resources(spec, status, V1_37)[0] == 6 * NANOS
