"""Telling the service why a cluster is not reported, so that its silence can be understood."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog
from django.db import Error as DatabaseFault
from django.db import connection

from workloads.actions import record_collection_failure
from workloads.collection import CollectionFailure
from workloads.collector.troubles import failure_reason
from workloads.errors import ClusterNotFound
from workloads.reporting.errors import ClusterBusy

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from apikeys.audit import Actor
    from workloads.collector.troubles import Trouble

log = structlog.get_logger("workloads.collector")


class Telling:
    """Tells of troubles when they change, and the service once for each interval that they last."""

    def __init__(
        self,
        cluster_id: uuid.UUID,
        actor: Actor,
        interval: float,
        changed: Callable[[list[Trouble]], None],
    ) -> None:
        self._cluster_id, self._actor = cluster_id, actor
        self._interval, self._changed = interval, changed
        self._told: set[tuple[str, str]] = set()
        self._due = 0.0

    def tell(self, troubles: list[Trouble]) -> None:
        """Tell what has to be told now; the next report that is applied ends it for the service."""
        now = {(trouble.resource, trouble.reason.value) for trouble in troubles}
        if now != self._told:
            self._told, self._due = now, 0.0
            self._changed(troubles)
        if troubles and time.monotonic() >= self._due:
            self._due = time.monotonic() + self._interval
            record(self._cluster_id, self._actor, troubles[0].as_failure())


def tell_failure(cluster_id: uuid.UUID, actor: Actor, error: Exception) -> None:
    """Tell the service why the collection has ended."""
    message = str(error) or type(error).__name__
    record(cluster_id, actor, CollectionFailure(reason=failure_reason(error), message=message))


def record(cluster_id: uuid.UUID, actor: Actor, failure: CollectionFailure) -> None:
    """Keep a failure with the cluster; without a database, the log has to do."""
    try:
        record_collection_failure(cluster_id=cluster_id, failure=failure, actor=actor)
    except (DatabaseFault, ClusterNotFound, ClusterBusy) as error:
        log.warning("failure_not_recorded", error=f"{type(error).__name__}: {error}")
        if isinstance(error, DatabaseFault):
            drop_connection()


def drop_connection() -> None:
    """Have the next statement take another connection; within a transaction it cannot."""
    if not connection.in_atomic_block:
        connection.close()
