"""Demo clusters and workloads, registered and reported in the same way as by collectors."""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.utils import timezone

from infra_service.demo.health_history import past_reports, report_at
from infra_service.demo.seeded_random import SeededRandom
from infra_service.demo.users import COMMAND
from workloads import actions
from workloads.collection import (
    DEFAULT_REPORT_INTERVAL,
    MAX_REPORT_INTERVAL,
    CollectionFailure,
    FailureReason,
)
from workloads.kubernetes.facts import RUNNING, WAITING, WorkloadKind
from workloads.kubernetes.health import HealthStatus
from workloads.kubernetes.records import ContainerRecord, WorkloadRecord
from workloads.models import Cluster, Workload
from workloads.reporting.applying import apply_report
from workloads.reporting.reports import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CLUSTER, _WORKLOAD = 10, 11

_REGIONS: Final = ("eu-west-1", "eu-central-1", "us-east-1", "us-west-2", "ap-southeast-2")
_STAGES: Final = ("prod", "staging", "dev", "edge")
_KINDS: Final = {
    WorkloadKind.DEPLOYMENT: 80, WorkloadKind.STATEFUL_SET: 12, WorkloadKind.DAEMON_SET: 8,
}  # fmt: skip
#: Health and reason, with weights per thousand workloads.
_HEALTH: Final = {
    (HealthStatus.HEALTHY, ""): 910,
    (HealthStatus.HEALTHY, "RolloutInProgress"): 10,
    (HealthStatus.HEALTHY, "ScaledToZero"): 5,
    (HealthStatus.DEGRADED, "ReplicasNotReady"): 30,
    (HealthStatus.DEGRADED, "RestartsIncreasing"): 20,
    (HealthStatus.ERROR, "CrashLoopBackOff"): 12,
    (HealthStatus.ERROR, "ImagePullBackOff"): 8,
    (HealthStatus.UNSPECIFIED, ""): 5,
}
#: The possible health of workloads, for each cluster in rotation, so that clusters differ.
_SEEN: Final = (
    frozenset(HealthStatus),
    {HealthStatus.DEGRADED},
    {HealthStatus.HEALTHY},
    {HealthStatus.DEGRADED},
)
_TEAMS: Final = ("payments", "growth", "search", "platform", "data", "identity", "mobile", "ops")
_APPS: Final = ("api", "web", "worker", "scheduler", "gateway", "cache", "indexer", "exporter")
_TIERS: Final = {"backend": 6, "frontend": 3, "data": 1}
_VERSIONS: Final = {"4.2.1": 6, "4.2.0": 3, "4.1.7": 1}
#: The share of containers in which some pods run an older image of a moved tag.
_MOVED: Final = 0.05
_MIB: Final = 1024 * 1024
_MEASURED: Final = 0.95
#: The numbers of clusters with problems: a collector without permissions, and missing reports.
_FAILING, _SILENT = 1, 3
#: The number of the cluster with a gap of some hours in its reports.
_INTERRUPTED: Final = 2
#: The number of clusters with a history of health.
_WITH_HISTORY: Final = 4
_COLLECTOR: Final = "seed_demo"
_FORBIDDEN: Final = CollectionFailure(
    reason=FailureReason.FORBIDDEN,
    message="daemonsets.apps is forbidden: the service account may not list them",
    resource="daemonsets",
    collector_version=_COLLECTOR,
)


def load_clusters(total: int) -> int:
    """Create missing demo clusters, and return the number of new clusters."""
    there = {cluster.name for cluster in _clusters(total)}
    missing = [name for name in _names(total) if name not in there]
    for name in missing:
        actions.create_cluster(fields={"name": name}, actor=COMMAND)
    return len(missing)


def report_clusters(total: int) -> int:
    """Report the demo clusters again, and return the number of reports.

    No collector runs for demo clusters, so their report interval is a day. One cluster reports only
    once.
    """
    reported = 0
    for number, cluster in enumerate(_clusters(total)):
        falls_silent = number == _SILENT
        if cluster.collector_version == _COLLECTOR and falls_silent:
            continue
        uid = uuid.UUID(int=SeededRandom(_CLUSTER, number).getrandbits(128), version=4)
        report = Report(
            reported_at=timezone.now(),
            complete=False,
            records=[],
            cluster_uid=cluster.uid or str(uid),
            interval_seconds=DEFAULT_REPORT_INTERVAL if falls_silent else MAX_REPORT_INTERVAL,
            collector_version=_COLLECTOR,
        )
        apply_report(cluster_id=cluster.pk, report=report, actor=COMMAND)
        if number == _FAILING:
            actions.record_collection_failure(
                cluster_id=cluster.pk, failure=_FORBIDDEN, actor=COMMAND
            )
        reported += 1
    return reported


def load_workloads(total: int, clusters: int, progress: Callable[[int], None]) -> int:
    """Report missing demo workloads of all clusters, and return the number of new rows.

    The workloads of the first clusters get a history with their first report.
    """
    found = _clusters(clusters)
    # Other workloads may have been reported to the demo clusters.
    demo = Workload.objects.filter(cluster__in=found, name__regex=r"-[0-9a-f]+$")
    names = demo.values_list("name", flat=True)
    there = {int(name.rpartition("-")[2], 16) for name in names}
    missing = [number for number in range(total) if number not in there]
    for number, cluster in enumerate(found):
        records = [_record(one, number) for one in missing if one * clusters // total == number]
        is_first = cluster.last_report_at is None
        reports = [report_at(timezone.now(), records, complete=is_first)] if records else []
        if is_first and number < _WITH_HISTORY:
            reports = past_reports(number, records, timezone.now(), has_gap=number == _INTERRUPTED)
        with transaction.atomic():
            for report in reports:
                apply_report(cluster_id=cluster.pk, report=report, actor=COMMAND)
        progress(total * (number + 1) // clusters)
    return len(missing)


def _names(total: int) -> list[str]:
    return [
        f"{_STAGES[number % len(_STAGES)]}-{_REGIONS[number % len(_REGIONS)]}-{number:03}"
        for number in range(total)
    ]


def _clusters(total: int) -> list[Cluster]:
    """Return the existing demo clusters in their order."""
    found = {cluster.name: cluster for cluster in Cluster.objects.filter(name__in=_names(total))}
    return [found[name] for name in _names(total) if name in found]


def _record(number: int, cluster: int) -> WorkloadRecord:
    rng = SeededRandom(_WORKLOAD, number)
    team, app, kind = rng.choice(_TEAMS), rng.choice(_APPS), rng.pick(_KINDS)
    health, reason = rng.pick(_HEALTH)
    if health not in _SEEN[cluster % len(_SEEN)]:
        health, reason = HealthStatus.HEALTHY, ""
    desired = 0 if reason == "ScaledToZero" else 1 + int(rng.expovariate(1 / 3))
    ready = {HealthStatus.HEALTHY: desired, HealthStatus.DEGRADED: desired - 1}.get(health, 0)
    cpu = desired * rng.choice((50, 100, 250, 500, 1000))
    memory = desired * rng.choice((64, 128, 256, 512, 2048)) * _MIB
    is_measured = rng.random() < _MEASURED
    return WorkloadRecord(
        kind=kind,
        namespace=f"{team}-{rng.choice(('core', 'jobs', 'tools', 'edge'))}",
        name=f"{app}-{number:x}",
        uid=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        labels={
            "app.kubernetes.io/name": app,
            "app.kubernetes.io/instance": f"{app}-{number:x}",
            "team": team,
            "tier": rng.pick(_TIERS),
        },
        health_status=health,
        status_reason=reason,
        replicas_desired=desired,
        replicas_ready=ready,
        replicas_available=ready,
        figures={
            "cpu_requests_millicores": cpu,
            "cpu_limits_millicores": 2 * cpu,
            "cpu_used_millicores": int(cpu * rng.random()) if is_measured else None,
            "memory_requests_bytes": memory,
            "memory_limits_bytes": 2 * memory,
            "memory_used_bytes": int(memory * rng.random()) if is_measured else None,
            "ephemeral_storage_requests_bytes": 0,
        },
        containers=tuple(_containers(app, reason, rng)),
    )


def _containers(app: str, reason: str, rng: SeededRandom) -> Iterator[ContainerRecord]:
    names = (app, "proxy", "logs")[: rng.choice((1, 1, 1, 2, 3))]
    is_failing = reason in {"CrashLoopBackOff", "ImagePullBackOff"}
    is_idle = reason in {"ImagePullBackOff", "ScaledToZero"}
    for name in names:
        image = f"registry.example.com/{name}:{rng.pick(_VERSIONS)}"
        builds = ("new", "old") if rng.random() < _MOVED else ("new",)
        yield ContainerRecord(
            name=name,
            image=image,
            restart_count=rng.randrange(1, 200) if is_failing else 0,
            state=WAITING if is_failing else RUNNING,
            ready=not is_failing,
            running=() if is_idle else tuple(sorted(_running(image, build) for build in builds)),
        )


def _running(image: str, build: str) -> str:
    return f"{image}@sha256:{hashlib.sha256(f'{image}{build}'.encode()).hexdigest()}"
