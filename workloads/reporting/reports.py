"""A report of the workloads of a cluster, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from workloads.kubernetes.records import WorkloadRecord


class Place(NamedTuple):
    """The key that identifies a workload within its cluster."""

    namespace: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The distinct workloads that a reporter observed at `reported_at` (aware).

    If `complete` is true, the cluster has no other workloads. `cluster_uid` is the uid of the
    cluster's kube-system namespace, or empty if it is unknown. `interval_seconds` is the time until
    the next report, or None if it is unknown.
    """

    reported_at: dt.datetime
    complete: bool
    records: Sequence[WorkloadRecord]
    deleted: frozenset[Place] = frozenset()
    cluster_uid: str = ""
    interval_seconds: int | None = None
    collector_version: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """The numbers of workloads that a report created, changed, deleted and left unchanged."""

    created: int
    updated: int
    deleted: int
    unchanged: int
