"""Destinations of a collector's reports: the only step in which collectors differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from workloads.collection import FailureReason

if TYPE_CHECKING:
    from workloads.collection import CollectionFailure
    from workloads.reporting.reports import Applied, Report


class NotReportedError(Exception):
    """A report was not applied, as far as is known; a newer one may be.

    ``retry_after`` is the wish of who refused it, in seconds.
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
    """No report will ever be applied: the cluster is not registered, or is another one."""

    reason = FailureReason.REPORT_REFUSED


class Destination(Protocol):
    """Takes the reports of one cluster, from one thread at a time."""

    def apply(self, report: Report) -> Applied:
        """Bring a report.

        Raises:
            NotReportedError, ReportingEndedError: it was not applied.
        """

    def tell(self, failure: CollectionFailure) -> None:
        """Say why the cluster cannot be collected; the next report that is applied ends that.

        Raises:
            NotReportedError, ReportingEndedError: nobody has heard it.
        """

    def stop(self) -> None:
        """End what would be waited for, in whatever thread."""

    def close(self) -> None:
        """Give back what the thread holds that brings the reports."""
