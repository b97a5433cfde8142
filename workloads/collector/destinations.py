"""The interface of the destinations of reports: the database or the HTTP API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from workloads.collection import FailureReason

if TYPE_CHECKING:
    from workloads.collection import CollectionFailure
    from workloads.reporting.reports import Applied, Report


class NotReportedError(Exception):
    """A report was probably not applied. A newer report may succeed.

    ``retry_after`` is the delay that the server requested, in seconds.
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
    """No later report can succeed: the cluster is not registered, or its uid differs."""

    reason = FailureReason.REPORT_REFUSED


class Destination(Protocol):
    """A destination of the reports of a cluster, used by one thread at a time."""

    def apply(self, report: Report) -> Applied:
        """Deliver a report.

        Raises:
            NotReportedError, ReportingEndedError: the report was not applied.
        """

    def publish(self, failure: CollectionFailure) -> None:
        """Record why the collector cannot read the cluster. The next report ends the failure.

        Raises:
            NotReportedError, ReportingEndedError: the failure was not recorded.
        """

    def stop(self) -> None:
        """Abort waiting in all threads."""

    def close(self) -> None:
        """Release the resources of the reporting thread."""
