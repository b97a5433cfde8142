"""What is told because time has passed: no row of the trail says it.

Each is found anew at each look, with an id that is made of what it is about and of its moment, so
that it is entered once, whoever looks and however often.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from apikeys.models import ApiKey
from infra_service.database.retries import retrying
from infra_service.webhooks import trail
from infra_service.webhooks.messages import written
from infra_service.webhooks.models import WebhookEvent
from infra_service.webhooks.publishing import lock_details, place_in, publish
from infra_service.webhooks.reach import reaches
from states.lockinfo import LockInfo
from states.models import State
from workloads.cluster_health import ClusterHealth, is_in_health, patience
from workloads.models import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from infra_service.webhooks.reach import Reach

#: Days before its end at which a key is told of; of several that have passed, the last.
EXPIRY_NOTICES: Final = (1, 7, 30)
#: What should have been told longer ago is told no more; entered events are known for longer.
LATEST: Final = dt.timedelta(days=14)
#: Of each type so many are looked at.
_MOST: Final = 10_000
_ENTERED: Final = 500
_NAMESPACE: Final = uuid.UUID("3f0c9a4e-6b52-4d0e-9a51-1f6c1a7be0d2")


@retrying
def publish_timed() -> int:
    """Enter what is due and not entered yet; return how many events that was.

    0 also when somebody else is at it.
    """
    reached, now = reaches().values(), timezone.now()
    wanted = {name for one in reached for name in one.endpoint.event_types if name in FINDERS}
    due = [
        event
        for name in sorted(wanted)
        for event in FINDERS[name](now, reached)
        if now - LATEST <= event.occurred_at <= now and any(one.has(event) for one in reached)
    ]
    entered = 0
    for start in range(0, len(due), _ENTERED):
        batch = {event.pk: event for event in due[start : start + _ENTERED]}
        known = WebhookEvent.objects.filter(pk__in=batch).values_list("pk", flat=True)
        new = [batch[pk] for pk in batch.keys() - set(known)]
        if not new:
            continue
        with transaction.atomic():
            if trail.locked_position() is None:
                return entered
            publish(sorted(new, key=lambda event: event.occurred_at))
        entered += len(new)
    return entered


def event_at(kind: str, resource_id: Any, moment: dt.datetime, **data: Any) -> WebhookEvent:
    """Return an event whose id follows from what it is about and from its moment."""
    return WebhookEvent(
        id=uuid.uuid5(_NAMESPACE, f"{kind} {resource_id} {moment.isoformat()}"),
        type=kind,
        occurred_at=moment,
        resource_id=str(resource_id),
        data={"id": str(resource_id), **data},
    )


def _held_locks(now: dt.datetime, _reached: Collection[Reach]) -> Iterator[WebhookEvent]:
    """Yield the locks that are held for too long, each once."""
    longest = dt.timedelta(minutes=settings.WEBHOOK_LOCK_HELD_MINUTES)
    held = State.objects.visible().filter(
        lock_id__isnull=False,
        lock_acquired_at__lte=now - longest,
        lock_acquired_at__gte=now - longest - LATEST,
    )
    for state in held.with_names().order_by("pk")[:_MOST]:
        since: Any = state.lock_acquired_at
        stored: Any = state.lock_info
        said = LockInfo(**stored).described()
        event = event_at("state.lock_held", state.pk, since + longest, lock=lock_details(said))
        event.data["held_since"] = written(since)
        place_in(event, state)
        yield event


def _expiring_keys(now: dt.datetime, reached: Collection[Reach]) -> Iterator[WebhookEvent]:
    """Yield the keys of the endpoints' owners that end soon."""
    owners = {one.endpoint.owner_id for one in reached}
    last = now + dt.timedelta(days=max(EXPIRY_NOTICES))
    ending = ApiKey.objects.active().filter(
        created_by__in=owners, expires_at__gt=now, expires_at__lte=last
    )
    for key in ending.order_by("expires_at", "pk")[:_MOST]:
        ends_at: Any = key.expires_at
        days = next(d for d in EXPIRY_NOTICES if ends_at - dt.timedelta(days=d) <= now)
        moment = ends_at - dt.timedelta(days=days)
        if moment >= key.created_at:  # who made it for so short a time knows
            event = event_at(
                "api_key.expiring",
                key.pk,
                moment,
                name=key.name,
                days=days,
                expires_at=written(ends_at),
            )
            event.owner_id = key.created_by_id
            yield event


def _unreachable_clusters(_now: dt.datetime, _reached: Collection[Reach]) -> Iterator[WebhookEvent]:
    """Yield the clusters whose reports have ceased."""
    silent = Cluster.objects.filter(is_in_health(ClusterHealth.UNREACHABLE, Now()))
    for cluster in silent.order_by("pk")[:_MOST]:
        heard: Any = cluster.last_received_at
        if heard is not None:
            event = event_at(
                "cluster.unreachable", cluster.pk, heard + patience(cluster), name=cluster.name
            )
            event.cluster_id = cluster.pk
            yield event


#: How those of a type are found.
FINDERS: Final[Mapping[str, Callable[[dt.datetime, Collection[Reach]], Iterator[WebhookEvent]]]] = {
    "state.lock_held": _held_locks,
    "api_key.expiring": _expiring_keys,
    "cluster.unreachable": _unreachable_clusters,
}
