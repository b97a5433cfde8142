import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.reduce import (
    reduce_pod,
    reduce_pod_metrics,
    reduce_replicaset,
    reduce_workload,
)

from .objects import CREATED, SECRET, raw_pod, raw_workload, status

# Garbage: real objects, of which anything may be replaced by anything.
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=4,
)
WHOLE_POD = json.dumps(
    raw_pod(
        conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        containerStatuses=[
            status(restartCount=1, lastState={"terminated": {"exitCode": 1, "finishedAt": CREATED}})
        ],
        initContainerStatuses=[status("init", state={"waiting": {"reason": "X"}})],
    )
)
WHOLE_WORKLOAD = json.dumps(
    raw_workload(
        {
            "replicas": 1,
            "updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}},
            "template": {
                "spec": {
                    "containers": [{"name": "a", "image": "b"}],
                    "initContainers": [{"name": "c", "restartPolicy": "Always"}],
                }
            },
        },
        {"conditions": [{"type": "Available", "status": "True", "reason": "Fine"}]},
    )
)


def spoil(data: st.DataObject, value: Any) -> Any:
    """Walk to a random place of a JSON value and put junk there."""
    if isinstance(value, dict | list) and value and data.draw(st.integers(0, 4)):
        key = data.draw(
            st.sampled_from(list(value) if isinstance(value, dict) else range(len(value)))
        )
        value[key] = spoil(data, value[key])
        return value
    return data.draw(junk)


def spoiled(data: st.DataObject, whole: str) -> dict[str, Any]:
    raw: dict[str, Any] = json.loads(whole)
    part = data.draw(st.sampled_from(sorted(raw)))
    raw[part] = spoil(data, raw[part])
    return raw


@given(st.data())
def test_garbage_costs_no_more_than_itself(data: st.DataObject) -> None:
    raw = spoiled(data, WHOLE_POD)
    reduce_pod(raw)
    reduce_replicaset(raw)
    reduce_pod_metrics(raw)
    raw = spoiled(data, WHOLE_WORKLOAD)
    for kind in WorkloadKind:
        reduce_workload(raw, kind)


def test_reduced_objects_contain_no_secrets() -> None:
    raw = raw_pod(containerStatuses=[status()])
    template = {"spec": raw["spec"]}
    workload = {
        "metadata": {"uid": "u", "namespace": "demo", "name": "app"},
        "spec": {"template": template},
    }
    assert SECRET not in repr(reduce_pod(raw))
    assert SECRET not in repr(reduce_workload(workload, WorkloadKind.DEPLOYMENT))
