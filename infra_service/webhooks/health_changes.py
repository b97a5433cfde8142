"""Webhook events about workload health: one message per cluster for several minutes of changes.

A flapping workload appears once in a message. A report that changes thousands of workloads causes a
single message.

``HealthPosition`` records the time until which the changes of a cluster are published, on the clock
of its reporter. No change can appear before this time: the service applies the reports of a cluster
in sequence, by a compare-and-swap of the cluster's row, and rejects a report that is not later than
the previous report.
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
    Min,
    OuterRef,
    Subquery,
    Value,
    When,
    Window,
)
from django.db.models.functions import Coalesce, FirstValue, Greatest, Least, RowNumber

from infra_service.lib.commandline.isolation import isolated
from infra_service.lib.database import citus
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
#: The maximum number of workloads that a message lists, worst first. The message counts the rest.
MOST_NAMED: Final = 20
#: The maximum size of the list in bytes. A message has less than 20 KB.
_MAX_BYTES: Final = 16_000
#: The maximum lag of a position without health changes. Each search reads the changes in the lag.
_MAX_IDLE_LAG: Final = dt.timedelta(hours=1)


def begin() -> None:
    """Start publishing health changes now, if no endpoint subscribes to them yet.

    Call this function in the transaction that saves a subscribing endpoint, before the save.
    """
    if WebhookEndpoint.objects.have_type(TYPE):
        return
    _save_positions(Cluster.objects.filter(last_received_at__isnull=False).order_by("pk"))


def publish_health_changes() -> int:
    """Publish the changes of each cluster that is due, and return the number of clusters.

    Also return 0 if another process is publishing. A change is lost if all subscribed endpoints are
    disabled.
    """
    if not WebhookEndpoint.objects.have_type(TYPE):
        return 0
    gathered = dt.timedelta(minutes=settings.WEBHOOK_HEALTH_CHANGED_MINUTES)
    entered, quiet = 0, []
    for cluster in _clusters_behind():
        if cluster.first_change is None:
            # A much later position is from before a clock was set back.
            lag = abs(_seen_until(cluster) - cluster.since)
            quiet += [cluster] if lag > _MAX_IDLE_LAG else []
        elif _waited(cluster) >= gathered:
            with isolated("publish changes of health", cluster.pk):
                entered += _advance([cluster], [_event_of(cluster)])
    if quiet:
        _advance(quiet, [])
    return entered


def _clusters_behind() -> list[Any]:
    """Return the clusters with the first unpublished change of each.

    A cluster without a position was registered after the first subscription. All times here are on
    the clock of its reporter, which can be far behind the service's clock. On Citus, a query per
    cluster reads its changes.
    """
    seen_until = Least("last_report_at", "last_received_at")
    earliest = ExpressionWrapper(seen_until - Value(LATEST), DateTimeField())
    positions = HealthPosition.objects.filter(cluster=OuterRef("pk")).values("told_until")
    changes = _changes(OuterRef("pk"), OuterRef("since")).order_by("at").values("at")
    nothing = Value(None, output_field=DateTimeField())
    clusters = Cluster.objects.timed().filter(last_received_at__isnull=False)
    found: list[Any] = list(
        clusters.annotate(
            told_until=Subquery(positions),
            since=Greatest(Coalesce("told_until", earliest), earliest),
            first_change=nothing if citus.is_used() else Subquery(changes[:1]),
        ).order_by("pk")
    )
    if citus.is_used():
        for cluster in found:
            unpublished = _changes(cluster.pk, cluster.since)
            cluster.first_change = unpublished.aggregate(first=Min("at"))["first"]
    return found


def _waited(cluster: Any) -> dt.timedelta:
    """Return how long the first change has waited, although its time is on the reporter's clock."""
    reported: dt.timedelta = _seen_until(cluster) - cluster.first_change
    silent: dt.timedelta = cluster.read_at - cluster.last_received_at
    return reported + silent


def _seen_until(cluster: Cluster) -> Any:
    """Return the time of the reporter's last observation, for a cluster that has reported."""
    return seen_until(cluster)


def _changes(cluster_id: Any, since: Any) -> TransitionQuerySet:
    return Transition.objects.of_health().filter(cluster_id=cluster_id, at__gt=since)


@retrying
def _advance(clusters: Iterable[Any], events: Sequence[WebhookEvent]) -> int:
    """Advance the positions of clusters, publish the events, and return the number of new events.

    Skip clusters with a position that another process has advanced.
    """
    with transaction.atomic():
        if audit_reader.locked_position() is None:
            return 0
        now_at = dict(HealthPosition.objects.values_list("pk", "told_until"))
        still = [one for one in clusters if now_at.get(one.pk) == one.told_until]
        if not still:
            return 0
        _save_positions(still)
        return publish(events)


def _save_positions(clusters: Iterable[Cluster]) -> None:
    """Set the positions of clusters to their last reports."""
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
        workloads=list(_within_size(_worst_workloads(changes))),
        workload_counts=cluster.workload_counts(),
    )
    event.noticed_at = whole["received_at"]
    return event


def _worst_workloads(changes: TransitionQuerySet) -> Iterator[dict[str, Any]]:
    """Yield the changed workloads, the worst health first, with their old and new health."""
    trouble = [
        When(to_health_status=health.value, then=Value(place))
        for place, health in enumerate(MOST_TROUBLE_FIRST)
    ]
    of_workload: Any = {"partition_by": ["workload_id"]}
    latest = changes.annotate(
        changes=Window(Count("*"), **of_workload),
        before=Window(FirstValue("from_health_status"), **of_workload, order_by="number"),
        newest=Window(RowNumber(), **of_workload, order_by="-number"),
        trouble=Case(*trouble, default=Value(len(trouble)), output_field=IntegerField()),
    ).filter(newest=1)
    rows: list[Any] = list(latest.order_by("trouble", "-at", "workload_id")[:MOST_NAMED])
    places = {
        pk: place
        for pk, *place in Workload.objects.filter(
            pk__in=[row.workload_id for row in rows]
        ).values_list("pk", "namespace", "name", "kind")
    }
    for row in rows:
        # A deleted workload has no name.
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


def _within_size(workloads: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    size = 0
    for one in workloads:
        size += len(json.dumps(one))
        if size > _MAX_BYTES:
            return
        yield one
