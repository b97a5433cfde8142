"""Scheduled events: caused by the passage of time, without a row in the audit log.

Each search finds the same events again. Their ids are derived from the resource and the time of the
cause, so that each event is published once.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from apikeys.models import ApiKey
from infra_service.lib.commandline.isolation import isolated
from infra_service.lib.database.retries import retrying
from infra_service.webhooks import audit_reader
from infra_service.webhooks.messages import written
from infra_service.webhooks.models import WebhookEvent
from infra_service.webhooks.publishing import lock_details, publish, set_place
from infra_service.webhooks.subscriptions import subscribers
from states.lockinfo import LockInfo
from states.models import State
from workloads.cluster_health import ClusterHealth, is_in_health, report_timeout
from workloads.models import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from django.db.models import QuerySet

    from infra_service.webhooks.subscriptions import Reach

#: Days before the expiry of a key at which its owner is notified. Only the latest due notice is
#: published.
EXPIRY_NOTICES: Final = (1, 7, 30)
#: The age after which events are not published. Published events are stored for longer.
LATEST: Final = dt.timedelta(days=14)
#: The maximum number of rows per event type and search.
_MOST: Final = 10_000
_BATCH: Final = 500
_NAMESPACE: Final = uuid.UUID("3f0c9a4e-6b52-4d0e-9a51-1f6c1a7be0d2")


@retrying
def publish_timed() -> int:
    """Publish due events that are not published yet, and return their number.

    Stop if another process is publishing.
    """
    now = timezone.now()
    endpoints = subscribers(now - LATEST)
    wanted = {name for one in endpoints for name in one.endpoint.event_types if name in FINDERS}
    due = [
        event
        for name in sorted(wanted)
        for event in _found(name, now, endpoints)
        if now - LATEST <= event.occurred_at <= now
        and any(one.subscribes_to(event) for one in endpoints)
    ]
    entered = 0
    for start in range(0, len(due), _BATCH):
        batch = {event.pk: event for event in due[start : start + _BATCH]}
        known = WebhookEvent.objects.filter(pk__in=batch).values_list("pk", flat=True)
        new = [batch[pk] for pk in batch.keys() - set(known)]
        if not new:
            continue
        with transaction.atomic():
            if audit_reader.locked_position() is None:
                return entered
            entered += publish(sorted(new, key=lambda event: event.occurred_at))
    return entered


def _found(name: str, now: dt.datetime, endpoints: Collection[Reach]) -> list[WebhookEvent]:
    finder = FINDERS[name]
    events = []
    for row in finder.rows(now, endpoints):
        with isolated(f"publish {name}", row.pk):
            event = finder.event_of(row, now)
            events += [] if event is None else [event]
    return events


def event_at(
    kind: str, resource_id: Any, cause: dt.datetime, occurred_at: dt.datetime, **data: Any
) -> WebhookEvent:
    """Return an event with an id that is derived from the resource and the time of the cause.

    A changed setting that moves ``occurred_at`` therefore does not publish the same event again.
    """
    return WebhookEvent(
        id=uuid.uuid5(_NAMESPACE, f"{kind} {resource_id} {cause.isoformat()}"),
        type=kind,
        occurred_at=occurred_at,
        resource_id=str(resource_id),
        data={"id": str(resource_id), **data},
    )


def _longest_lock() -> dt.timedelta:
    return dt.timedelta(minutes=settings.WEBHOOK_LOCK_HELD_MINUTES)


def _locks(now: dt.datetime, _endpoints: Collection[Reach]) -> QuerySet[State]:
    """Return the states with locks that are held for too long."""
    held = State.objects.visible().filter(
        lock_id__isnull=False,
        lock_acquired_at__lte=now - _longest_lock(),
        lock_acquired_at__gte=now - _longest_lock() - LATEST,
    )
    return held.with_names().order_by("pk")[:_MOST]


def _held_lock(state: State, _now: dt.datetime) -> WebhookEvent:
    since: Any = state.lock_acquired_at
    stored: Any = state.lock_info
    lock = lock_details(LockInfo(**stored).described())
    event = event_at("state.lock_held", state.pk, since, since + _longest_lock(), lock=lock)
    event.data["held_since"] = written(since)
    set_place(event, state)
    return event


def _expiring_keys(now: dt.datetime, endpoints: Collection[Reach]) -> QuerySet[ApiKey]:
    """Return the keys that expire soon and belong to owners of endpoints."""
    owners = {one.endpoint.owner_id for one in endpoints}
    last = now + dt.timedelta(days=max(EXPIRY_NOTICES))
    keys = ApiKey.objects.active().filter(
        created_by__in=owners, expires_at__gt=now, expires_at__lte=last
    )
    return keys.order_by("expires_at", "pk")[:_MOST]


def _expiry_notice(key: ApiKey, now: dt.datetime) -> WebhookEvent | None:
    """Return the notice for a key, or None if the key's lifetime is shorter than the notice."""
    expiry: Any = key.expires_at
    days = next(d for d in EXPIRY_NOTICES if expiry - dt.timedelta(days=d) <= now)
    moment = expiry - dt.timedelta(days=days)
    if moment < key.created_at:
        return None
    data = {"name": key.name, "days": days, "expires_at": written(expiry)}
    event = event_at("api_key.expiring", key.pk, moment, moment, **data)
    event.owner_id = key.created_by_id
    return event


def _unreachable_clusters(_now: dt.datetime, _endpoints: Collection[Reach]) -> QuerySet[Cluster]:
    """Return the clusters that missed their reports."""
    silent = Cluster.objects.filter(is_in_health(ClusterHealth.UNREACHABLE, Now()))
    return silent.order_by("pk")[:_MOST]


def _unreachable(cluster: Cluster, _now: dt.datetime) -> WebhookEvent:
    last_contact: Any = cluster.last_received_at
    moment = last_contact + report_timeout(cluster)
    return event_of_cluster("cluster.unreachable", cluster, last_contact, moment)


def event_of_cluster(
    kind: str, cluster: Cluster, cause: dt.datetime, occurred_at: dt.datetime, **data: Any
) -> WebhookEvent:
    """Return an event of the cluster (see ``event_at``)."""
    event = event_at(kind, cluster.pk, cause, occurred_at, name=cluster.name, **data)
    event.cluster_id, event.cluster_name = cluster.pk, cluster.name
    return event


class Finder(NamedTuple):
    """Functions that find the rows for an event type, and create the event of a row."""

    rows: Callable[[dt.datetime, Collection[Reach]], QuerySet[Any]]
    event_of: Callable[[Any, dt.datetime], WebhookEvent | None]


FINDERS: Final[Mapping[str, Finder]] = {
    "state.lock_held": Finder(_locks, _held_lock),
    "api_key.expiring": Finder(_expiring_keys, _expiry_notice),
    "cluster.unreachable": Finder(_unreachable_clusters, _unreachable),
}
