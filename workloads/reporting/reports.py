"""A report of a cluster's workloads, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from workloads.kubernetes.records import WorkloadRecord


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
    collector_version: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """How many workloads a report created, changed, deleted and left as they were."""

    created: int
    updated: int
    deleted: int
    unchanged: int
