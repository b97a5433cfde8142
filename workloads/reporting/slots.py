"""Limit the number of simultaneous reports per process, so that other requests are served."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final

from workloads.reporting.errors import ClusterBusy, TooManyReports

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

#: The maximum number of reports in progress, with one per cluster, because reports of the same
#: cluster would wait for each other.
AT_WORK: Final = 4
#: The maximum number of waiting requests, and the maximum wait in seconds. Additional requests are
#: rejected immediately.
WAITING: Final = 8
TIMEOUT: Final = 1.0


class ReportSlots:
    """A limit on simultaneous reports. A request acquires a slot after it has read the body."""

    def __init__(self, at_work: int = AT_WORK, waiting: int = WAITING) -> None:
        self._at_work, self._most_waiting = at_work, waiting
        self._busy: set[uuid.UUID] = set()
        self._waiting = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def acquire(self, cluster_id: uuid.UUID) -> Iterator[None]:
        """Run the block in a slot.

        Raises:
            ClusterBusy: another report of the cluster is being applied.
            TooManyReports: too many reports of other clusters are being applied.
        """
        with self._changed:
            if not self._is_free(cluster_id) and not self._wait(cluster_id):
                raise ClusterBusy if cluster_id in self._busy else TooManyReports
            self._busy.add(cluster_id)
        try:
            yield
        finally:
            with self._changed:
                self._busy.remove(cluster_id)
                self._changed.notify_all()

    def _is_free(self, cluster_id: uuid.UUID) -> bool:
        return cluster_id not in self._busy and len(self._busy) < self._at_work

    def _wait(self, cluster_id: uuid.UUID) -> bool:
        if self._waiting == self._most_waiting:
            return False
        self._waiting += 1
        try:
            return self._changed.wait_for(lambda: self._is_free(cluster_id), TIMEOUT)
        finally:
            self._waiting -= 1


#: The slots of this process.
report_slots: Final = ReportSlots()
