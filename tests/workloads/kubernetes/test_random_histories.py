"""Health over random lives of workloads, whose objects are consistent with each other.

A small model of a controller and its pods returns raw objects. It measures by itself for how long
its workload has been down, and so shares only the lengths of the intervals with the rules.
"""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.workloads.snapshots import SnapshotBuilder
from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.health import HealthStatus
from workloads.kubernetes.records import WorkloadRecord

START = datetime(2026, 9, 1, tzinfo=UTC)
CREATED = START - timedelta(days=30)
GRACE = 300
RANK = {HealthStatus.HEALTHY: 0, HealthStatus.DEGRADED: 1, HealthStatus.ERROR: 2}
DEPLOYMENT = WorkloadKind.DEPLOYMENT


def stamp(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Pod:
    def __init__(self, now: int, name: str) -> None:
        self.name, self.created, self.changed = name, now, now
        self.state = "creating"  # unschedulable, creating, ready, unready, crashing
        self.deleted: int | None = None

    def become(self, state: str, now: int) -> None:
        if (state == "ready") != (self.state == "ready"):
            self.changed = now
        self.state = state

    def raw(self, owner: str, uid: str) -> dict[str, Any]:
        ready = self.state == "ready"
        waiting = {"creating": "ContainerCreating", "crashing": "CrashLoopBackOff"}
        state = (
            {"waiting": {"reason": waiting[self.state]}}
            if self.state in waiting
            else {"running": {"startedAt": stamp(self.created)}}
        )
        conditions = [
            {
                "type": "Ready",
                "status": "True" if ready else "False",
                "reason": "" if ready else "ContainersNotReady",
                "lastTransitionTime": stamp(self.changed),
            }
        ]
        statuses = [{"name": "app", "ready": ready, "restartCount": 0, "state": state}]
        if self.state == "unschedulable":
            conditions = [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                 "lastTransitionTime": stamp(self.created)}
            ]  # fmt: skip
            statuses = []
        metadata: dict[str, Any] = {
            "namespace": "d",
            "name": self.name,
            "creationTimestamp": stamp(self.created),
            "ownerReferences": [{"kind": owner, "uid": uid, "controller": True}],
        }
        if self.deleted is not None:
            metadata["deletionTimestamp"] = stamp(self.deleted)
        return {
            "metadata": metadata,
            "spec": {"containers": [{"name": "app"}]},
            "status": {
                "phase": "Running" if ready else "Pending",
                "conditions": conditions,
                "containerStatuses": statuses,
            },
        }


class Life:
    """A workload that `step` changes and `record` reports."""

    def __init__(self, kind: WorkloadKind, rng: random.Random) -> None:
        self.kind, self.rng, self.now = kind, rng, 0
        self.desired = rng.randint(1, 4)
        self.deadline = rng.choice([None, 120, 600, 1800])
        self.rolling_since: int | None = None
        self.pods: list[Pod] = []
        self.number = 0
        #: Since when no pod has been ready, and since when replicas are missing for Available.
        self.down_since: int | None = 0
        self.unavailable_since: int | None = 0
        self.replace()
        self.observe()

    def live(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.deleted is None]

    def ready(self) -> int:
        return sum(pod.state == "ready" for pod in self.live())

    def replace(self) -> None:
        while len(self.live()) < self.desired:
            self.number += 1
            self.pods.append(Pod(self.now, f"p-{self.number}"))

    def step(self) -> None:
        self.now += self.rng.choice([1, 5, 30, 60, 100, 299])
        action = self.rng.choice(
            ["ready", "ready", "unready", "delete", "crash", "scale", "roll", "place", "wait"]
        )
        pod = self.rng.choice(self.live()) if self.live() else None
        if action == "scale":
            self.desired = self.rng.randint(1, 4)
            for extra in self.live()[self.desired :]:
                self.pods.remove(extra)
        elif action == "roll" and self.kind is DEPLOYMENT:
            self.rolling_since = self.now
        elif action == "delete" and pod is not None:
            pod.deleted = self.now + 30
        elif pod is not None:
            states = {"ready": "ready", "unready": "unready", "crash": "crashing"}
            unplaced = "unschedulable" if pod.state == "creating" else pod.state
            pod.become(states.get(action, unplaced if action == "place" else pod.state), self.now)
        self.pods = [p for p in self.pods if p.deleted is None or p.deleted > self.now]
        self.replace()
        self.observe()

    def observe(self) -> None:
        """Update the status like a controller after each change."""
        ready = self.ready()
        if ready:
            self.down_since = None
        elif self.down_since is None:
            self.down_since = self.now
        if ready >= self.desired:
            self.unavailable_since, self.rolling_since = None, None
        elif self.unavailable_since is None:
            self.unavailable_since = self.now

    def progressing(self) -> dict[str, Any]:
        if self.rolling_since is None:
            return {"status": "True", "reason": "NewReplicaSetAvailable"}
        if self.deadline and self.now - self.rolling_since > self.deadline:
            return {"status": "False", "reason": "ProgressDeadlineExceeded"}
        return {"status": "True", "reason": "ReplicaSetUpdated"}

    def raw(self) -> dict[str, Any]:
        ready = self.ready()
        if self.kind is WorkloadKind.DAEMON_SET:
            spec: dict[str, Any] = {}
            status: dict[str, Any] = {
                "desiredNumberScheduled": self.desired,
                "numberReady": ready,
                "numberAvailable": ready,
                "updatedNumberScheduled": self.desired,
            }
        else:
            spec = {"replicas": self.desired}
            status = {
                "replicas": len(self.live()),
                "readyReplicas": ready,
                "availableReplicas": ready,
                "updatedReplicas": len(self.live()),
            }
        if self.kind is DEPLOYMENT:
            spec["progressDeadlineSeconds"] = self.deadline or 2**31 - 1
            since = self.unavailable_since
            status["conditions"] = [
                {
                    "type": "Available",
                    "status": "True" if since is None else "False",
                    "reason": "MinimumReplicasUnavailable",
                    "lastTransitionTime": stamp(since or 0),
                }
            ]
            if self.deadline:
                status["conditions"].append({"type": "Progressing"} | self.progressing())
        metadata = {
            "uid": "u", "namespace": "d", "name": "w", "generation": 1,
            "creationTimestamp": CREATED.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }  # fmt: skip
        return {"metadata": metadata, "spec": spec, "status": {"observedGeneration": 1, **status}}

    def record(self, later: float = 0) -> WorkloadRecord:
        builder = SnapshotBuilder()
        builder.add_workload(self.raw(), self.kind)
        owner, uid = ("ReplicaSet", "rs") if self.kind is DEPLOYMENT else (self.kind.value, "u")
        if self.kind is DEPLOYMENT:
            reference = {"kind": "Deployment", "uid": "u", "controller": True}
            builder.add_replicaset({"metadata": {"uid": "rs", "ownerReferences": [reference]}})
        for pod in self.pods:
            builder.add_pod(pod.raw(owner, uid))
        (record,) = builder.records(START + timedelta(seconds=self.now + later))
        assert isinstance(record, WorkloadRecord)
        return record

    def failed(self) -> bool:
        """Return whether the controller or a kubelet itself reports a failure."""
        exceeded = self.deadline and self.progressing()["reason"] == "ProgressDeadlineExceeded"
        return bool(exceeded) or any(pod.state == "crashing" for pod in self.live())

    def grace(self) -> int:
        rolling = self.kind is DEPLOYMENT and self.rolling_since is not None
        return max(GRACE, (self.deadline or 0) if rolling else 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", list(WorkloadKind))
def test_invariants_hold(kind: WorkloadKind, seed: int) -> None:
    life = Life(kind, random.Random(f"{kind}{seed}"))
    for _ in range(60):
        life.step()
        record, ready = life.record(), life.ready()
        status, reason = record.health_status, record.status_reason

        # 1. Only a complete workload has no reason.
        assert reason or (status == "HEALTHY" and ready >= life.desired)
        assert (status == "HEALTHY") <= (ready >= life.desired)
        # 2. No error within the grace, unless a controller or a kubelet reports a failure.
        down = life.down_since
        if status == "ERROR" and not life.failed():
            assert down is not None
            begin = life.unavailable_since if kind is DEPLOYMENT else oldest(life)
            assert begin is not None
            assert life.now - begin > life.grace()
        # 3. A workload that is down for longer than the grace needs help, however young the pods
        # are. Without the condition Available, the objects show it by the pods that lived through
        # it.
        if down is not None:
            begin = down if kind is DEPLOYMENT else oldest(life)
            if begin is not None and life.now - begin > life.grace():
                assert status == "ERROR"
            # 4. Time alone brings an error, once.
            assert life.record(later=7200).health_status == "ERROR"


def oldest(life: Life) -> int | None:
    return min((pod.changed for pod in life.live()), default=None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", list(WorkloadKind))
def test_a_pod_more_that_is_ready_never_makes_it_worse(kind: WorkloadKind, seed: int) -> None:
    life = Life(kind, random.Random(f"more{kind}{seed}"))
    for _ in range(40):
        life.step()
        before = life.record().health_status
        unready = [pod for pod in life.live() if pod.state != "ready"]
        if unready:
            pod = life.rng.choice(unready)
            pod.become("ready", life.now)
            life.observe()
            assert RANK[life.record().health_status] <= RANK[before]
