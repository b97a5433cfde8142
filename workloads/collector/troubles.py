"""Repeated failures that prevent a collector from reporting a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import structlog
from django.utils import timezone

from workloads.collection import CollectionFailure, FailureReason
from workloads.collector.destinations import NotReportedError, ReportingEndedError
from workloads.collector.errors import (
    EndedEarlyError,
    ExpiredError,
    InvalidAnswerError,
    RefusedError,
    UnreachableError,
)

if TYPE_CHECKING:
    import datetime as dt

log = structlog.get_logger("workloads.collector")

#: The number of consecutive failures after which a trouble is reported.
TROUBLE: Final = 3


# The first matching class applies.
_REASONS: Final[tuple[tuple[type[Exception], FailureReason], ...]] = (
    (EndedEarlyError, FailureReason.WATCH_LOST),
    (ExpiredError, FailureReason.WATCH_LOST),
    (InvalidAnswerError, FailureReason.INVALID_ANSWER),
    (UnreachableError, FailureReason.UNREACHABLE),
)
_STATUSES: Final[dict[int, FailureReason]] = {
    HTTPStatus.UNAUTHORIZED: FailureReason.UNAUTHENTICATED,
    HTTPStatus.FORBIDDEN: FailureReason.FORBIDDEN,
    HTTPStatus.REQUEST_TIMEOUT: FailureReason.UNAVAILABLE,
    HTTPStatus.TOO_MANY_REQUESTS: FailureReason.UNAVAILABLE,
}


def failure_reason(error: Exception) -> FailureReason:
    """Return the ``FailureReason`` of an exception."""
    if isinstance(error, NotReportedError | ReportingEndedError):
        return error.reason
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    status = error.status if isinstance(error, RefusedError) else 0
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return FailureReason.UNAVAILABLE
    return _STATUSES.get(status, FailureReason.OTHER)


@dataclass(frozen=True, slots=True)
class Trouble:
    """A series of failures of a resource: the last error, the start (aware) and the count."""

    resource: str
    reason: FailureReason
    error: str
    since: dt.datetime
    failures: int

    def as_failure(self) -> CollectionFailure:
        """Return the failure in the form of the cluster's collection status."""
        return CollectionFailure(reason=self.reason, message=self.error, resource=self.resource)


class FailuresInARow:
    """The consecutive failures of a resource since its last success."""

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self.last: Trouble | None = None

    @property
    def trouble(self) -> Trouble | None:
        """Return the last failure, or None before ``TROUBLE`` consecutive failures."""
        return self.last if self.last is not None and self.last.failures >= TROUBLE else None

    def add(self, event: str, error: Exception) -> None:
        """Count and log a failure."""
        before = self.last
        self.last = Trouble(
            resource=self._resource,
            reason=failure_reason(error),
            error=str(error) or type(error).__name__,
            since=before.since if before else timezone.now(),
            failures=before.failures + 1 if before else 1,
        )
        log.warning(
            event, resource=self._resource, error=self.last.error, failures=self.last.failures
        )

    def clear(self) -> None:
        """Reset the count after a success."""
        self.last = None
