"""Read the usage of pods from the metrics API, which may be missing, slow or forbidden."""

from __future__ import annotations

import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import structlog

from workloads.collection import MISSED_REPORTS
from workloads.collector.client import Resource
from workloads.collector.errors import ClosedError, KubernetesError, RefusedError
from workloads.collector.usage_table import UsageTable
from workloads.kubernetes.reduce import reduce_pod_metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.collector.client import ClusterClient

log = structlog.get_logger("workloads.collector")

METRICS: Final = Resource("/apis/metrics.k8s.io/v1beta1/pods", aggregated=True)
#: The timeout of the metrics API in seconds. Its lists are not paginated.
WITHIN: Final = 30.0
# Statuses of a missing or forbidden metrics API, which invalidate earlier measurements.
_NONE: Final = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}


class UsageReader(threading.Thread):
    """A background thread that reads the usage of all pods every `interval` seconds, or once.

    A failed or partial reading is discarded, because its sums would be wrong. The last reading is
    valid for `MISSED_REPORTS` intervals.
    """

    def __init__(
        self,
        client: ClusterClient,
        namespaces: Sequence[str],
        interval: float | None,
        stop: threading.Event,
    ) -> None:
        super().__init__(name="usage", daemon=True)
        self._client = client
        self._resources = METRICS.scoped(namespaces)
        self._interval, self._stopping = interval, stop
        self._answered = threading.Event()
        self._measured: tuple[float, UsageTable] | None = None

    def run(self) -> None:
        while True:
            started = time.monotonic()
            self._read()
            self._answered.set()
            if self._interval is None:
                return
            # Wait at least a second, even if the reading took longer than the interval.
            if self._stopping.wait(max(started + self._interval - time.monotonic(), 1.0)):
                return

    def latest(self, wait: float = 0.0) -> UsageTable | None:
        """Return the last valid reading, or None.

        Wait up to `wait` seconds for the first reading.
        """
        self._answered.wait(wait)
        measured = self._measured
        if measured is None:
            return None
        at, usage = measured
        if self._interval is not None:
            max_age = MISSED_REPORTS * max(self._interval, WITHIN)
            if time.monotonic() - at > max_age:
                return None
        return usage

    def _read(self) -> None:
        usage = UsageTable()
        started = time.monotonic()
        try:
            for resource in self._resources:
                left = max(started + WITHIN - time.monotonic(), 1.0)
                for raw in self._client.unpaged(resource, within=left):
                    if (measured := reduce_pod_metrics(raw)) is not None:
                        usage.put(*measured)
        except ClosedError:
            return
        except KubernetesError as error:
            status = error.status if isinstance(error, RefusedError) else None
            if status in _NONE:
                self._measured = None
            log.warning("metrics_unavailable", status=status, error=str(error))
        except Exception:
            # If the thread ended, the usage would become stale unnoticed.
            log.exception("metrics_unreadable")
        else:
            self._measured = started, usage
