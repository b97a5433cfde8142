"""How a report of a cluster's workloads is applied, whoever brings it.

A report says all (a snapshot: what is absent from it is gone) or what changed (a delta). It is
applied in one transaction that begins with a compare-and-swap on the time of the cluster's last
report. That write also locks the cluster's row until the end, so that two reports never mix; and
readers see the workloads of before or of after, never half.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec
from django.db import transaction
from django.db.models import Count, Q, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from apikeys import audit
from apikeys.retries import retrying
from workloads.kubernetes.health import HealthStatus
from workloads.models import Cluster, Workload
from workloads.report_errors import ClusterUidMismatch, StaleReport

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Iterable, Iterator, Sequence

    from apikeys.audit import Actor
    from workloads.kubernetes.records import ContainerRecord, WorkloadRecord


class Place(NamedTuple):
    """What tells a workload from the others of its cluster."""

    namespace: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a reporter saw at `reported_at` (aware), each workload at most once.

    With `complete` it is all that there was. `cluster_uid` is the uid of the cluster's kube-system
    namespace, or empty when the reporter does not know it. `interval_seconds` is how long it
    will be until the next report, None when nothing is said.
    """

    reported_at: dt.datetime
    complete: bool
    records: Sequence[WorkloadRecord]
    deleted: frozenset[Place] = frozenset()
    cluster_uid: str = ""
    interval_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """How many workloads a report created, changed, deleted and left as they were."""

    created: int
    updated: int
    deleted: int
    unchanged: int


# What a report says of a workload and what is compared; `observed_at` is only written along.
_SAID: Final = (
    "uid", "labels", "health_status", "status_reason",
    "replicas_desired", "replicas_ready", "replicas_available",
    "cpu_requests_millicores", "cpu_limits_millicores", "cpu_used_millicores",
    "memory_requests_bytes", "memory_limits_bytes", "memory_used_bytes",
    "containers",
)  # fmt: skip
_PLAIN: Final = _SAID[2:-1]
_COUNTERS: Final = {
    HealthStatus.UNSPECIFIED: "workloads_unspecified",
    HealthStatus.HEALTHY: "workloads_healthy",
    HealthStatus.DEGRADED: "workloads_degraded",
    HealthStatus.ERROR: "workloads_error",
}
# Rows of one statement: 22 columns each, and PostgreSQL takes 65,535 parameters.
_BATCH: Final = 1000


@retrying
def apply_report(*, cluster_id: uuid.UUID, report: Report, actor: Actor) -> Applied:
    """Make the cluster's workloads what the report says; rows that stay the same are not written.

    Raises:
        Cluster.DoesNotExist: there is no such cluster.
        ClusterUidMismatch: the report is of another cluster.
        StaleReport: a report of the same moment, or a later one, is already applied.
        CredentialsInvalid, TokenExpired, CallerChanged: the caller has ended, or lost rights.
    """
    with transaction.atomic():
        _claim(cluster_id, report, actor)
        changes = _compare(cluster_id, report)
        for keys in _batches(changes.gone):
            Workload.objects.filter(pk__in=keys).delete()
        Workload.objects.bulk_create(changes.new, batch_size=_BATCH)
        Workload.objects.bulk_create(
            changes.changed,
            batch_size=_BATCH,
            update_conflicts=True,
            unique_fields=["cluster", *Place._fields],
            update_fields=[*_SAID, "observed_at"],
        )
        if changes.any():
            _count(cluster_id)
    return Applied(
        created=len(changes.new) - changes.replaced,
        updated=len(changes.changed) + changes.replaced,
        deleted=len(changes.gone) - changes.replaced,
        unchanged=changes.unchanged,
    )


def _claim(cluster_id: uuid.UUID, report: Report, actor: Actor) -> None:
    """Swap the time of the last report, or find out why that is refused.

    The cluster's revision is left: it guards what people change, and reports come each minute.
    """
    values: dict[str, Any] = {
        "last_report_at": report.reported_at,
        "last_received_at": timezone.now(),
    }
    if report.complete:
        values["last_snapshot_at"] = report.reported_at
    if report.interval_seconds is not None:
        values["report_interval_seconds"] = report.interval_seconds
    newer = Q(last_report_at=None) | Q(last_report_at__lt=report.reported_at)
    own = Q(uid=None) | Q(uid=report.cluster_uid) if report.cluster_uid else Q()
    clusters = Cluster.objects.filter(pk=cluster_id)
    if not clusters.filter(newer, own, actor.unchanged()).update(**values):
        if (again := actor.look_again()) != actor:
            _claim(cluster_id, report, again)
            return
        cluster = clusters.get()
        if report.cluster_uid and cluster.uid not in (None, report.cluster_uid):
            raise ClusterUidMismatch(report.cluster_uid, cluster.uid)
        raise StaleReport(report.reported_at, cast("dt.datetime", cluster.last_report_at))
    if report.cluster_uid and clusters.filter(uid=None).update(uid=report.cluster_uid):
        audit.record(actor, "cluster.identify", cluster_id, uid=report.cluster_uid)


@dataclass(slots=True)
class _Changes:
    """What is to be written. `replaced` are those of `new` that stand in the place of a `gone`."""

    gone: list[uuid.UUID] = field(default_factory=list)
    new: list[Workload] = field(default_factory=list)
    changed: list[Workload] = field(default_factory=list)
    replaced: int = 0
    unchanged: int = 0

    def any(self) -> bool:
        return bool(self.gone or self.new or self.changed)


def _compare(cluster_id: uuid.UUID, report: Report) -> _Changes:
    changes = _Changes()
    pending = {Place(r.namespace, r.name, r.kind.value): r for r in report.records}
    for key, namespace, name, kind, *said in _stored(cluster_id, report, pending):
        place = Place(namespace, name, kind)
        record = pending.pop(place, None)
        if record is None:
            changes.gone.append(key)
        elif record.uid and said[0] and record.uid != said[0]:
            # Deleted and created again under the same name: another object, with another id.
            changes.gone.append(key)
            changes.new.append(_row(cluster_id, record))
            changes.replaced += 1
        elif _said(record, said[0]) == _decoded(said):
            changes.unchanged += 1
        else:
            changes.changed.append(_row(cluster_id, record, id=key, uid=record.uid or said[0]))
    changes.new += [_row(cluster_id, record) for record in pending.values()]
    return changes


def _stored(
    cluster_id: uuid.UUID, report: Report, reported: Iterable[Place]
) -> Iterator[Sequence[Any]]:
    """Yield the rows that the report may change: id, place and what was said of each."""
    # As text, for msgspec decodes it in a fifth of the time that the ORM's fields take.
    texts = (Cast(name, TextField()) for name in ("labels", "containers"))
    said = ("uid", next(texts), *_PLAIN, next(texts))
    rows = Workload.objects.filter(cluster=cluster_id).values_list("id", *Place._fields, *said)
    if report.complete:
        yield from rows.iterator(chunk_size=_BATCH)
        return
    wanted = {*reported, *report.deleted}
    for places in _batches(sorted(wanted)):
        # By namespaces and names, which an index serves; that finds a few too many.
        namespaces, names = {p.namespace for p in places}, {p.name for p in places}
        for row in rows.filter(namespace__in=namespaces, name__in=names):
            if Place(*row[1:4]) in wanted:
                yield row
                wanted.discard(Place(*row[1:4]))


def _decoded(said: list[Any]) -> list[Any]:
    """Return what a row says, with its labels and containers decoded."""
    uid, labels, *plain, containers = said
    return [uid, msgspec.json.decode(labels), *plain, msgspec.json.decode(containers)]


def _said(record: WorkloadRecord, stored_uid: str) -> list[Any]:
    """Return what the report says, in the order and the form in which the rows hold it."""
    plain = [getattr(record, name) for name in _PLAIN]
    return [record.uid or stored_uid, dict(record.labels), *plain, _containers(record.containers)]


def _containers(containers: Iterable[ContainerRecord]) -> list[dict[str, Any]]:
    return [
        {
            "name": container.name,
            "image": container.image,
            "restart_count": container.restart_count,
            "state": container.state,
            "ready": container.ready,
        }
        for container in containers
    ]


def _row(cluster_id: uuid.UUID, record: WorkloadRecord, **known: Any) -> Workload:
    said = dict(zip(_SAID, _said(record, ""), strict=True))
    return Workload(
        cluster_id=cluster_id,
        namespace=record.namespace,
        name=record.name,
        kind=record.kind.value,
        observed_at=record.observed_at,
        **{**said, **known},
    )


def _count(cluster_id: uuid.UUID) -> None:
    """Keep the counts that the cluster's health follows from; an index has them."""
    rows = Workload.objects.filter(cluster=cluster_id).values_list("health_status")
    counted = Counter(dict(rows.annotate(Count("id")).order_by()))
    Cluster.objects.filter(pk=cluster_id).update(
        **{column: counted[status.value] for status, column in _COUNTERS.items()}
    )


def _batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
