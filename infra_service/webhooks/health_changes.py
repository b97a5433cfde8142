"""Changes in the health of workloads: of a cluster one message for all of some minutes.

A workload that flaps is in it once, and a report that turns thousands makes no more than one.

Up to where a cluster was told is a row of its own (``HealthPosition``), by the clock of its
reporter. No change enters behind it: reports of a cluster are applied one after the other, each
with the row of the cluster swapped, and a later one is of a later moment.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import (
    Case,
    Count,
    DateTimeField,
    ExpressionWrapper,
    IntegerField,
    Max,
    OuterRef,
    Subquery,
    Value,
    When,
    Window,
)
from django.db.models.functions import Coalesce, FirstValue, Greatest, Least, RowNumber

from infra_service.lib.commandline.isolation import isolated
from infra_service.lib.database.retries import retrying
from infra_service.webhooks import audit_reader
from infra_service.webhooks.messages import written
from infra_service.webhooks.models import HealthPosition, WebhookEndpoint
from infra_service.webhooks.publishing import cut, publish
from infra_service.webhooks.scheduled_events import LATEST, event_of_cluster
from workloads.cluster_health import seen_until
from workloads.models import Cluster, Transition, Workload
from workloads.worst_first import MOST_TROUBLE_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from infra_service.webhooks.models import WebhookEvent
    from workloads.models.history import TransitionQuerySet

TYPE: Final = "workload.health_changed"
#: Workloads that a message names, the worst first; of all others it has the number.
MOST_NAMED: Final = 20
#: Bytes of these in a message, which has less than 20 KB.
_MOST_BYTES: Final = 16_000
#: How far a position may be behind where no health changes: each look reads all else behind it.
_QUIET: Final = dt.timedelta(hours=1)


def begin() -> None:
    """Let changes be told from now on, where nobody wants to be told of them yet.

    Called before an endpoint that wants to be is saved, in its transaction.
    """
    if _is_wanted():
        return
    _put(Cluster.objects.filter(last_received_at__isnull=False).order_by("pk"))


def publish_health_changes() -> int:
    """Publish the changes of each cluster whose time has come; return the number of clusters.

    It is 0 also when another process does it. A change is lost while every endpoint that wants it
    is disabled.
    """
    if not _is_wanted():
        return 0
    gathered = dt.timedelta(minutes=settings.WEBHOOK_HEALTH_CHANGED_MINUTES)
    entered, quiet = 0, []
    for cluster in _clusters_behind():
        if cluster.first_change is None:
            quiet += [cluster] if _seen_until(cluster) - cluster.since > _QUIET else []
        elif _waited(cluster) >= gathered:
            with isolated("publish changes of health", cluster.pk):
                entered += _move([cluster], [_event_of(cluster)])
    if quiet:
        _move(quiet, [])
    return entered


def _is_wanted() -> bool:
    """Whether any endpoint names the type, also one that is told of nothing now."""
    return any(
        TYPE in types for types in WebhookEndpoint.objects.values_list("event_types", flat=True)
    )


def _clusters_behind() -> list[Any]:
    """Return the clusters with the first unpublished change of each.

    A cluster without a position is newer than the first subscription. All moments here are on the
    clock of its reporter, which may be far behind that of the service.
    """
    seen_until = Least("last_report_at", "last_received_at")
    earliest = ExpressionWrapper(seen_until - Value(LATEST), DateTimeField())
    positions = HealthPosition.objects.filter(cluster=OuterRef("pk")).values("told_until")
    changes = _changes(OuterRef("pk"), OuterRef("since")).order_by("at").values("at")
    clusters = Cluster.objects.timed().filter(last_received_at__isnull=False)
    found = clusters.annotate(
        told_until=Subquery(positions),
        since=Greatest(Coalesce("told_until", earliest), earliest),
        first_change=Subquery(changes[:1]),
    )
    return list(found.order_by("pk"))


def _waited(cluster: Any) -> dt.timedelta:
    """Return how long the first change has waited; its moment is on the reporter's clock."""
    reported: dt.timedelta = _seen_until(cluster) - cluster.first_change
    silent: dt.timedelta = cluster.read_at - cluster.last_received_at
    return reported + silent


def _seen_until(cluster: Cluster) -> Any:
    """Return when the reporter last looked, of a cluster that has reported."""
    return seen_until(cluster)


def _changes(cluster_id: Any, since: Any) -> TransitionQuerySet:
    return Transition.objects.of_health().filter(cluster_id=cluster_id, at__gt=since)


@retrying
def _move(clusters: Iterable[Any], events: Sequence[WebhookEvent]) -> int:
    """Move the positions of clusters and publish the events behind them; return how many.

    Clusters whose positions another process has moved since are left out.
    """
    with transaction.atomic():
        if audit_reader.locked_position() is None:
            return 0
        now_at = dict(HealthPosition.objects.values_list("pk", "told_until"))
        still = [one for one in clusters if now_at.get(one.pk) == one.told_until]
        if not still:
            return 0
        _put(still)
        return publish(events)


def _put(clusters: Iterable[Cluster]) -> None:
    """Put the positions of clusters to their last reports."""
    HealthPosition.objects.bulk_create(
        [HealthPosition(cluster=one, told_until=_seen_until(one)) for one in clusters],
        update_conflicts=True,
        unique_fields=["cluster"],
        update_fields=["told_until"],
    )


def _event_of(cluster: Any) -> WebhookEvent:
    changes = _changes(cluster.pk, cluster.since).filter(at__lte=_seen_until(cluster))
    whole = changes.aggregate(
        number=Count("workload_id", distinct=True), last=Max("at"), received_at=Max("received_at")
    )
    event = event_of_cluster(
        TYPE,
        cluster,
        whole["last"],
        whole["last"],
        since=written(cluster.first_change),
        workloads_changed=whole["number"],
        workloads=list(_fitting(_named(changes))),
        workload_counts=cluster.workload_counts(),
    )
    event.noticed_at = whole["received_at"]
    return event


def _named(changes: TransitionQuerySet) -> Iterator[dict[str, Any]]:
    """Yield the workloads that are worst now: from which health to which, how often, and why."""
    trouble = [
        When(to_health_status=health.value, then=Value(place))
        for place, health in enumerate(MOST_TROUBLE_FIRST)
    ]
    of_workload: Any = {"partition_by": ["workload_id"]}
    last_ones = changes.annotate(
        changes=Window(Count("*"), **of_workload),
        before=Window(FirstValue("from_health_status"), **of_workload, order_by="number"),
        newest=Window(RowNumber(), **of_workload, order_by="-number"),
        trouble=Case(*trouble, default=Value(len(trouble)), output_field=IntegerField()),
    ).filter(newest=1)
    rows: list[Any] = list(last_ones.order_by("trouble", "-at", "workload_id")[:MOST_NAMED])
    places = {
        pk: place
        for pk, *place in Workload.objects.filter(
            pk__in=[row.workload_id for row in rows]
        ).values_list("pk", "namespace", "name", "kind")
    }
    for row in rows:
        # What is gone has no name any more.
        namespace, name, kind = places.get(row.workload_id, (None, None, None))
        yield {
            "id": str(row.workload_id),
            "namespace": namespace,
            "name": name,
            "kind": kind,
            "from_health_status": row.before,
            "to_health_status": row.to_health_status,
            "status_reason": cut(row.status_reason),
            "changes": row.changes,
            "at": written(row.at),
        }


def _fitting(workloads: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    size = 0
    for one in workloads:
        size += len(json.dumps(one))
        if size > _MOST_BYTES:
            return
        yield one
