"""A destination that applies reports directly to the service's database."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import Error as DatabaseFault
from django.db import connection

from workloads.actions import record_collection_failure
from workloads.collection import FailureReason
from workloads.collector.destinations import NotReportedError, ReportingEndedError
from workloads.errors import ClusterNotFound
from workloads.models import Cluster
from workloads.reporting.applying import apply_report
from workloads.reporting.errors import ClockAhead, ClusterBusy, ClusterUidMismatch, StaleReport

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    from apikeys.actors import Actor
    from workloads.collection import CollectionFailure
    from workloads.reporting.reports import Applied, Report


class DatabaseDestination:
    """A destination that applies reports in this process. All threads share the actor."""

    def __init__(self, cluster_id: uuid.UUID, actor: Actor) -> None:
        self._cluster_id, self._actor = cluster_id, actor

    def apply(self, report: Report) -> Applied:
        with _understood():
            return apply_report(cluster_id=self._cluster_id, report=report, actor=self._actor)

    def publish(self, failure: CollectionFailure) -> None:
        with _understood():
            record_collection_failure(
                cluster_id=self._cluster_id, failure=failure, actor=self._actor
            )

    def stop(self) -> None:
        """Do nothing: a report in progress runs to completion."""

    def close(self) -> None:
        connection.close()


@contextmanager
def _understood() -> Iterator[None]:
    """Convert exceptions to ``NotReportedError`` (retry) or ``ReportingEndedError`` (stop)."""
    try:
        yield
    except Cluster.DoesNotExist as error:
        raise ReportingEndedError(str(ClusterNotFound())) from error
    except (ClusterNotFound, ClusterUidMismatch) as error:
        raise ReportingEndedError(str(error)) from error
    except (StaleReport, ClockAhead) as error:
        raise NotReportedError(str(error), FailureReason.REPORT_REFUSED) from error
    except ClusterBusy as error:
        raise NotReportedError(str(error)) from error
    except DatabaseFault as error:
        # The next statement reconnects. A connection cannot be closed within a transaction.
        if not connection.in_atomic_block:
            connection.close()
        raise NotReportedError(f"{type(error).__name__}: {error}") from error
