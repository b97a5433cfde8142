"""The number of simultaneous reports per process, so that other requests find room."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final

from workloads.reporting.errors import ClusterBusy, TooManyReports

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

#: One of each cluster, since they would wait for each other, and so many in all.
AT_WORK: Final = 4
#: So many requests wait for a turn, each up to this many seconds; others are told at once.
WAITING: Final = 8
PATIENCE: Final = 1.0


class Turns:
    """Hands out turns. A body is read before, and everything else is done within one."""

    def __init__(self, at_work: int = AT_WORK, waiting: int = WAITING) -> None:
        self._at_work, self._most_waiting = at_work, waiting
        self._busy: set[uuid.UUID] = set()
        self._waiting = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def take(self, cluster_id: uuid.UUID) -> Iterator[None]:
        """Do the block in a turn.

        Raises:
            ClusterBusy: another report of the cluster is at work.
            TooManyReports: reports of other clusters are.
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
            return self._changed.wait_for(lambda: self._is_free(cluster_id), PATIENCE)
        finally:
            self._waiting -= 1


#: Those of this process.
turns: Final = Turns()
