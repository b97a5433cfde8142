"""Notify the service of the reason why a cluster is not reported."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

from workloads.collection import CollectionFailure
from workloads.collector.destinations import NotReportedError, ReportingEndedError
from workloads.collector.troubles import failure_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from workloads.collector.destinations import Destination
    from workloads.collector.troubles import Trouble

log = structlog.get_logger("workloads.collector")


class TroubleNotifier:
    """A notifier of changed troubles, which repeats the notification once per interval."""

    def __init__(
        self,
        destination: Destination,
        interval: float,
        changed: Callable[[list[Trouble]], None],
    ) -> None:
        self._destination = destination
        self._interval, self._changed = interval, changed
        self._reported: set[tuple[str, str]] = set()
        self._due = 0.0

    def notify(self, troubles: list[Trouble]) -> None:
        """Publish the current troubles if due. The next applied report clears them."""
        now = {(trouble.resource, trouble.reason.value) for trouble in troubles}
        if now != self._reported:
            self._reported, self._due = now, 0.0
            self._changed(troubles)
        if troubles and time.monotonic() >= self._due:
            self._due = time.monotonic() + self._interval
            record(self._destination, troubles[0].as_failure())


def publish_failure(destination: Destination, error: Exception) -> None:
    """Notify the service of the reason why the collection ended."""
    message = str(error) or type(error).__name__
    record(destination, CollectionFailure(reason=failure_reason(error), message=message))


def record(destination: Destination, failure: CollectionFailure) -> None:
    """Record a failure at the destination. Log a warning or an error if this fails."""
    try:
        destination.publish(failure)
    except (NotReportedError, ReportingEndedError) as error:
        log.warning("failure_not_recorded", error=str(error))
    except Exception:
        # A failed notification must not end the collector.
        log.exception("failure_not_recorded")
