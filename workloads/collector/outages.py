"""The start of outages, as observed by a collector.

If the pods of a StatefulSet or DaemonSet are replaced repeatedly, the objects only show the age of
the youngest pods. Without this record, each replacement would start a new grace period.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from workloads.kubernetes.case import Case

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Container

    from workloads.kubernetes.facts import WorkloadFacts
    from workloads.kubernetes.tally import PodTally


class Outages:
    """The start of each current outage, by the uid of the workload."""

    def __init__(self) -> None:
        self._since: dict[str, dt.datetime] = {}

    def remember(
        self, workload: WorkloadFacts, pods: PodTally, as_of: dt.datetime
    ) -> WorkloadFacts:
        """Return the facts with the earliest observed start of the current outage, if any.

        The condition Available of a Deployment already contains the start.
        """
        case = Case(workload, pods, as_of)
        since = case.unavailable_since() if case.down() else None
        if since is None or workload.unavailable_since is not None:
            self._since.pop(workload.uid, None)
            return workload
        since = min(since, self._since.get(workload.uid, since))
        self._since[workload.uid] = since
        return dataclasses.replace(workload, unavailable_since=since)

    def keep(self, uids: Container[str]) -> None:
        """Drop the outages of all workloads except these."""
        self._since = {uid: since for uid, since in self._since.items() if uid in uids}
