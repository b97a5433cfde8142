"""Destinations of a collector's reports: the only step in which collectors differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from workloads.collection import FailureReason

if TYPE_CHECKING:
    from workloads.collection import CollectionFailure
    from workloads.reporting.reports import Applied, Report


class NotReportedError(Exception):
    """A report was not applied, as far as is known; a newer report may succeed.

    ``retry_after`` is the server's requested delay, in seconds.
    """

    def __init__(
        self,
        message: str,
        reason: FailureReason = FailureReason.OTHER,
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after


class ReportingEndedError(Exception):
    """No report can succeed any more: the cluster is not registered, or is another cluster."""

    reason = FailureReason.REPORT_REFUSED


class Destination(Protocol):
    """Receives the reports of a cluster, from one thread at a time."""

    def apply(self, report: Report) -> Applied:
        """Deliver a report.

        Raises:
            NotReportedError, ReportingEndedError: it was not applied.
        """

    def publish(self, failure: CollectionFailure) -> None:
        """Record why the cluster cannot be collected, until the next report is applied.

        Raises:
            NotReportedError, ReportingEndedError: the failure was not recorded.
        """

    def stop(self) -> None:
        """Abort waiting, in any thread."""

    def close(self) -> None:
        """Release the resources of the reporting thread."""
