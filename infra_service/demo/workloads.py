"""Clusters and their workloads, as collectors would have reported them.

Clusters are registered and reported like real clusters; workloads are loaded as rows.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import uuid
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, Q
from django.utils import timezone

from infra_service.demo.health_history import past_of, report_gap_of
from infra_service.demo.loading import batches, insert, new
from infra_service.demo.people import COMMAND
from infra_service.demo.seeded_random import Chance
from workloads import actions
from workloads.collection import MAX_REPORT_INTERVAL, CollectionFailure, FailureReason
from workloads.kubernetes.facts import RUNNING, WAITING
from workloads.models import Cluster, ReportGap, Workload
from workloads.reporting.applying import apply_report
from workloads.reporting.reports import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_CLUSTER, _WORKLOAD = 10, 11

_REGIONS: Final = ("eu-west-1", "eu-central-1", "us-east-1", "us-west-2", "ap-southeast-2")
_STAGES: Final = ("prod", "staging", "dev", "edge")
_KINDS: Final = {"Deployment": 80, "StatefulSet": 12, "DaemonSet": 8}
#: Health and reason, with weights per thousand workloads.
_HEALTH: Final = {
    ("HEALTHY", ""): 910,
    ("HEALTHY", "RolloutInProgress"): 10,
    ("HEALTHY", "ScaledToZero"): 5,
    ("DEGRADED", "ReplicasNotReady"): 30,
    ("DEGRADED", "RestartsIncreasing"): 20,
    ("ERROR", "CrashLoopBackOff"): 12,
    ("ERROR", "ImagePullBackOff"): 8,
    ("WORKLOAD_HEALTH_STATUS_UNSPECIFIED", ""): 5,
}
#: The health of workloads in a cluster, in turn, so that clusters differ.
_SEEN: Final = (tuple(health for health, _ in _HEALTH), ("DEGRADED",), ("HEALTHY",), ("DEGRADED",))
_TEAMS: Final = ("payments", "growth", "search", "platform", "data", "identity", "mobile", "ops")
_APPS: Final = ("api", "web", "worker", "scheduler", "gateway", "cache", "indexer", "exporter")
_TIERS: Final = {"backend": 6, "frontend": 3, "data": 1}
_VERSIONS: Final = {"4.2.1": 6, "4.2.0": 3, "4.1.7": 1}
#: The share of containers in which some pods run an older image of a moved tag.
_MOVED: Final = 0.05
_MIB: Final = 1024 * 1024
_MEASURED: Final = 0.95
#: Clusters with problems: a collector without permissions, and missing reports.
_FAILING, _SILENT = 1, 3
#: The cluster with a gap of some hours in its reports.
_INTERRUPTED: Final = 2
_COLLECTOR: Final = "seed_demo"
_FORBIDDEN: Final = CollectionFailure(
    reason=FailureReason.FORBIDDEN,
    message="daemonsets.apps is forbidden: the service account may not list them",
    resource="daemonsets",
    collector_version=_COLLECTOR,
)


def load_clusters(total: int) -> int:
    """Create missing demo clusters; return the number of new clusters."""
    there = _ids(total)
    missing = [name for name in _names(total) if name not in there]
    interrupted = _names(total)[_INTERRUPTED : _INTERRUPTED + 1]
    for name in missing:
        cluster = actions.create_cluster(fields={"name": name}, actor=COMMAND)
        if name in interrupted:
            insert([report_gap_of(cluster.pk, timezone.now())])
    return len(missing)


def report_clusters(total: int) -> int:
    """Report the demo clusters again; return the number of reports.

    No collector runs for them, so their report interval is a day. A single cluster reports once and
    then falls silent.
    """
    ids, reported = _ids(total), 0
    for number, name in enumerate(_names(total)):
        cluster = Cluster.objects.get(pk=ids[name])
        falls_silent = number == _SILENT
        if cluster.collector_version == _COLLECTOR and falls_silent:
            continue
        uid = uuid.UUID(int=Chance(_CLUSTER, number).getrandbits(128), version=4)
        report = Report(
            reported_at=timezone.now(),
            complete=False,
            records=[],
            cluster_uid=cluster.uid or str(uid),
            interval_seconds=None if falls_silent else MAX_REPORT_INTERVAL,
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
    """Create missing demo workloads, distributed over clusters; return the number of new rows."""
    created, ids = 0, _ids(clusters)
    keys = [ids[name] for name in _names(clusters)]
    gaps = {gap.cluster_id: gap for gap in ReportGap.objects.filter(cluster_id__in=keys)}
    for numbers in batches(total):
        workloads = new(
            Workload,
            numbers,
            _workload_id,
            lambda number: _workload(number, number * clusters // total, keys),
        )
        now = timezone.now()
        pasts = [t for w in workloads for t in past_of(w, gaps.get(w.cluster_id), now)]
        insert(workloads, pasts)
        created += len(workloads)
        if workloads:
            _count({workload.cluster_id for workload in workloads})
        progress(numbers.stop)
    return created


def _count(clusters: Iterable[uuid.UUID]) -> None:
    """Update the counts and times that a report would store."""
    counts = (
        Workload.objects.filter(cluster__in=clusters)
        .values("cluster")
        .annotate(
            workloads_unspecified=Count(
                "pk", Q(health_status="WORKLOAD_HEALTH_STATUS_UNSPECIFIED")
            ),
            workloads_healthy=Count("pk", Q(health_status="HEALTHY")),
            workloads_degraded=Count("pk", Q(health_status="DEGRADED")),
            workloads_error=Count("pk", Q(health_status="ERROR")),
        )
    )
    now = timezone.now()
    reported = dict.fromkeys(("last_report_at", "last_received_at", "last_snapshot_at"), now)
    for row in counts:
        by_status = {name: count for name, count in row.items() if name != "cluster"}
        Cluster.objects.filter(pk=row["cluster"]).update(**reported, **by_status)


def _names(total: int) -> list[str]:
    return [
        f"{_STAGES[number % len(_STAGES)]}-{_REGIONS[number % len(_REGIONS)]}-{number:03}"
        for number in range(total)
    ]


def _ids(total: int) -> dict[str, uuid.UUID]:
    """Return the ids of the existing demo clusters by name."""
    return dict(Cluster.objects.filter(name__in=_names(total)).values_list("name", "pk"))


def _workload_id(number: int) -> uuid.UUID:
    return Chance(_WORKLOAD, number).row_id()


def _workload(number: int, cluster: int, keys: Sequence[uuid.UUID]) -> Workload:
    chance = Chance(_WORKLOAD, number)
    workload_id = chance.row_id()
    team, app, kind = chance.choice(_TEAMS), chance.choice(_APPS), chance.pick(_KINDS)
    health, reason = chance.pick(_HEALTH)
    if health not in _SEEN[cluster % len(_SEEN)]:
        health, reason = "HEALTHY", ""
    desired = 0 if reason == "ScaledToZero" else 1 + int(chance.expovariate(1 / 3))
    ready = {"HEALTHY": desired, "DEGRADED": desired - 1}.get(health, 0)
    requests = desired * chance.choice((50, 100, 250, 500, 1000))
    memory = desired * chance.choice((64, 128, 256, 512, 2048)) * _MIB
    measured = chance.random() < _MEASURED
    return Workload(
        id=workload_id,
        cluster_id=keys[cluster],
        namespace=f"{team}-{chance.choice(('core', 'jobs', 'tools', 'edge'))}",
        name=f"{app}-{number:x}",
        kind=kind,
        uid=str(uuid.UUID(int=chance.getrandbits(128), version=4)),
        labels={
            "app.kubernetes.io/name": app,
            "app.kubernetes.io/instance": f"{app}-{number:x}",
            "team": team,
            "tier": chance.pick(_TIERS),
        },
        health_status=health,
        status_reason=reason,
        replicas_desired=desired,
        replicas_ready=ready,
        replicas_available=ready,
        cpu_requests_millicores=requests,
        cpu_limits_millicores=2 * requests,
        cpu_used_millicores=int(requests * chance.random()) if measured else None,
        memory_requests_bytes=memory,
        memory_limits_bytes=2 * memory,
        memory_used_bytes=int(memory * chance.random()) if measured else None,
        containers=list(_containers(app, reason, chance)),
        observed_at=timezone.now() - dt.timedelta(minutes=chance.expovariate(1 / 600)),
    )


def _containers(app: str, reason: str, chance: Chance) -> Iterable[dict[str, Any]]:
    names = (app, "proxy", "logs")[: chance.choice((1, 1, 1, 2, 3))]
    failing = reason in {"CrashLoopBackOff", "ImagePullBackOff"}
    idle = reason in {"ImagePullBackOff", "ScaledToZero"}
    for name in names:
        image = f"registry.example.com/{name}:{chance.pick(_VERSIONS)}"
        builds = ("new", "old") if chance.random() < _MOVED else ("new",)
        yield {
            "name": name,
            "image": image,
            "restart_count": chance.randrange(1, 200) if failing else 0,
            "state": WAITING if failing else RUNNING,
            "ready": not failing,
            **({} if idle else {"running": [_running(image, build) for build in builds]}),
        }


def _running(image: str, build: str) -> str:
    return f"{image}@sha256:{hashlib.sha256(f'{image}{build}'.encode()).hexdigest()}"
