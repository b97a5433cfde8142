"""The service reads each field of a report as the agent wrote it."""

from __future__ import annotations

import dataclasses
import gzip
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apiserver import DAEMONSETS, DEPLOYMENTS, PODS, REPLICASETS, STATEFULSETS, recorded_lists
from tests.workloads.kubernetes.test_reduce_garbage import WHOLE_POD, WHOLE_WORKLOAD, spoiled
from tests.workloads.records import at, place, record, report
from tests.workloads.snapshots import SnapshotBuilder
from workloads.kubernetes.facts import MAX_IMAGE, WorkloadKind
from workloads.reporting.incoming import read_report
from workloads.reporting.outgoing import gzipped_body
from workloads.reporting.reports import Report

KINDS = {
    DEPLOYMENTS: WorkloadKind.DEPLOYMENT,
    STATEFULSETS: WorkloadKind.STATEFUL_SET,
    DAEMONSETS: WorkloadKind.DAEMON_SET,
}


def there_and_back(given: Report) -> Report:
    read = read_report(gzip.decompress(gzipped_body(given)), complete=given.complete)
    return dataclasses.replace(read, records=tuple(read.records))


@pytest.mark.parametrize("given", [
    report(0),
    report(0, cluster_uid="229cb448", interval_seconds=60, collector_version="agent/1.2"),
    report(0.123456, record(), record("other", memory_used_bytes=None, uid="", labels={})),
    report(1, record(status_reason='Err: "é\u2028\\ <b>', labels={"a.b/c": ""})),
    report(1, complete=False, deleted=frozenset({place(), place("db", kind="StatefulSet")})),
    report(1, record(), complete=False),
    report(1, complete=False),
])  # fmt: skip
def test_a_report_arrives_as_it_was(given: Report) -> None:
    assert there_and_back(given) == given


def test_the_recorded_cluster_arrives_as_it_was() -> None:
    builder = SnapshotBuilder({})
    lists = recorded_lists()
    for path, kind in KINDS.items():
        for raw in lists[path]:
            builder.add_workload(raw, kind)
    for raw in lists[REPLICASETS]:
        builder.add_replicaset(raw)
    for raw in lists[PODS]:
        builder.add_pod(raw)
    given = report(0, *builder.records(at(0)))

    assert len(given.records) == 54
    assert there_and_back(given) == given


def test_an_image_of_any_length_costs_no_report() -> None:
    raw = json.loads(WHOLE_WORKLOAD)
    raw["spec"]["template"]["spec"]["containers"][0]["image"] = "x" * 10_000
    builder = SnapshotBuilder()
    builder.add_workload(raw, WorkloadKind.DEPLOYMENT)
    given = report(0, *builder.records(at(0)))

    (found,) = there_and_back(given).records
    assert found.containers[0].image == "x" * MAX_IMAGE


@given(st.data())
def test_any_status_can_be_reported(data: st.DataObject) -> None:
    """Anything may write a status; the rest of an object is held to Kubernetes' rules by itself."""
    builder = SnapshotBuilder({})
    whole = json.loads(WHOLE_WORKLOAD)
    status = spoiled(data, json.dumps({"status": whole["status"]}))["status"]
    builder.add_workload({**whole, "status": status}, data.draw(st.sampled_from(WorkloadKind)))
    pod = json.loads(WHOLE_POD)
    status = spoiled(data, json.dumps({"status": pod["status"]}))["status"]
    owner = [{"kind": "DaemonSet", "uid": whole["metadata"]["uid"], "controller": True}]
    metadata = {**pod["metadata"], "ownerReferences": owner}
    builder.add_pod({**pod, "metadata": metadata, "status": status})
    given = report(0, *builder.records(at(0)))

    assert there_and_back(given) == given


def test_large_report_is_received_unchanged() -> None:
    rng = random.Random(1)
    given = report(0, *(record(f"w{n}", replicas_ready=rng.randrange(9)) for n in range(2000)))

    assert there_and_back(given) == given
