"""Publish audit events: select them, build the payload, and create their deliveries."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid5

from django.db import transaction

from apikeys.models import ApiKey
from infra_service.lib.commandline.isolation import isolated, process_isolated
from infra_service.lib.database.retries import retrying
from infra_service.webhooks import audit_reader
from infra_service.webhooks.event_types import AUDIT, TYPES
from infra_service.webhooks.models import DISABLED, Delivery, TrailPosition, WebhookEvent
from infra_service.webhooks.subscriptions import subscribers
from states.models import State

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from apikeys.models import AuditEvent
    from infra_service.webhooks.subscriptions import Reach

#: The maximum number of characters of a user's text, so that a message has less than 20 KB.
_MAX_TEXT: Final = 200
#: The maximum size of the details in ``audit.event``.
_MAX_DETAILS: Final = 16_000
#: The namespace for ids of ``audit.event``, as another event type may use the audit event's id.
_AUDIT_EVENTS: Final = UUID("6b0a7d53-7c1f-4f39-9d0e-2a1d1f4c8e55")
#: The published fields of a lock. They exclude the lock ID and the token that acquired the lock.
_LOCK_FIELDS: Final = ("who", "operation", "created")


@retrying
def publish_next() -> int:
    """Create deliveries for the next audit events, and return the number of events that were read.

    Also return 0 while another process is publishing.
    """
    position = TrailPosition.objects.first()
    if position is None or not audit_reader.has_unread(position):
        return 0
    with transaction.atomic():
        position = audit_reader.locked_position()
        if position is None:
            return 0
        before = position.event_id
        events = audit_reader.read(position)
        if position.event_id != before:
            position.save()
        publish(_to_publish(events))
        return len(events)


def publish(events: Sequence[WebhookEvent]) -> int:
    """Insert events with deliveries to subscribed endpoints, and return the number of new events.

    The caller must lock the read position (``audit_reader.locked_position``), so that delivery ids
    follow the order of insertion. Skip known events, and log events that cannot be inserted.
    """
    inserted = 0

    @transaction.atomic
    def enter(some: Sequence[WebhookEvent]) -> None:
        nonlocal inserted
        inserted += _insert(some)

    process_isolated("publish an event", events, enter)
    return inserted


def _insert(events: Sequence[WebhookEvent]) -> int:
    if not events:
        return 0
    endpoints = subscribers(min(event.observed_at for event in events))
    found = {
        event.pk: event for event in events if any(one.subscribes_to(event) for one in endpoints)
    }
    known = WebhookEvent.objects.filter(pk__in=found).values_list("pk", flat=True)
    for pk in list(known):
        del found[pk]
    if not found:
        return 0
    WebhookEvent.objects.bulk_create(found.values())
    passed = _matching(found, endpoints)
    Delivery.objects.bulk_create(
        _delivery(reach, event)
        for event in found.values()
        for reach in endpoints
        if reach.subscribes_to(event) and event.pk in passed[reach.endpoint.filter]
    )
    return len(found)


def _delivery(reach: Reach, event: WebhookEvent) -> Delivery:
    """Return a waiting delivery, or a failed delivery if the endpoint is disabled."""
    delivery = Delivery(endpoint=reach.endpoint, event=event, resource_id=event.resource_id)
    if not reach.endpoint.is_enabled:
        delivery.status, delivery.next_attempt_at = Delivery.Status.FAILED, None
        delivery.error = DISABLED
    return delivery


def _matching(events: Collection[UUID], endpoints: Iterable[Reach]) -> dict[str, set[UUID]]:
    """Return the matching events for each filter text."""
    # Imported here to keep the filter language out of commands that do not use it.
    from filterlang.compiler import compile_filter  # noqa: PLC0415
    from infra_service.webhooks.filters import WebhookEventFilters  # noqa: PLC0415

    entered = WebhookEvent.objects.filter(pk__in=events)
    passed: dict[str, set[UUID]] = defaultdict(set, {"": set(events)})
    for text in {reach.endpoint.filter for reach in endpoints} - passed.keys():
        # The savepoint keeps the transaction usable if the database rejects the filter.
        with isolated("compile the filter of a webhook", text), transaction.atomic():
            condition = compile_filter(WebhookEventFilters, text)
            passed[text] = set(entered.filter(condition).values_list("pk", flat=True))
    return passed


def _to_publish(events: Iterable[AuditEvent]) -> list[WebhookEvent]:
    """Return the events to publish for these audit events, in the same order."""
    events = list(events)
    wanted = [event for event in events if event.action in TYPES]
    ids: dict[str, set[str]] = defaultdict(set)
    for event in wanted:
        ids[event.action.partition(".")[0]].add(event.resource_id)
    states = {
        str(state.pk): state for state in State.objects.with_names().filter(pk__in=ids["state"])
    }
    keys = {key.pk: key for key in ApiKey.objects.filter(pk__in=ids["api_key"])}
    found = []
    for event in events:
        with isolated("publish an event", event.pk):
            found.append(_audit_event(event))
            if event.action in TYPES:
                made = _event_of(event, states.get(event.resource_id), keys.get(event.resource_id))
                found += [] if made is None else [made]
    return found


def _audit_event(event: AuditEvent) -> WebhookEvent:
    """Return the whole event, as ``GET /api/v1/audit-events`` does, for unbound endpoints."""
    is_long = len(json.dumps(event.details)) > _MAX_DETAILS
    actor_id = event.actor_id
    return WebhookEvent(
        id=uuid5(_AUDIT_EVENTS, str(event.pk)),
        type=AUDIT,
        occurred_at=event.occurred_at,
        resource_id=event.resource_id,
        data={
            "id": str(event.pk),
            "action": event.action,
            "actor_id": None if actor_id is None else str(actor_id),
            "actor_name": event.actor_name,
            "token_id": event.token_id,
            "resource_id": event.resource_id,
            "address": event.address,
            "request_id": event.request_id,
            "client_request_id": event.client_request_id,
            "trace_id": event.details.get("trace_id"),
            "details": {} if is_long else event.details,
            "is_truncated": is_long,
        },
    )


def _event_of(event: AuditEvent, state: State | None, key: ApiKey | None) -> WebhookEvent | None:
    """Return the webhook event, or None if its state or key has been deleted."""
    data = {"id": event.resource_id, "actor": event.actor_name, **_details(event)}
    made = WebhookEvent(
        id=event.pk,
        type=event.action,
        occurred_at=event.occurred_at,
        resource_id=event.resource_id,
        data=data,
    )
    kind = event.action.partition(".")[0]
    if kind == "cluster":
        name = data.get("name")
        if isinstance(name, dict):  # the audit log contains both names of a renamed cluster
            name, data["renamed_from"] = name["to"], name["from"]
            data["name"] = name
        made.cluster_id, made.cluster_name = UUID(event.resource_id), name
    elif kind == "state" and state is not None:
        set_place(made, state)
    elif kind == "api_key" and key is not None:
        made.owner_id = key.created_by_id
        made.data = {"name": key.name, **data}
    else:
        return None
    return made


def set_place(event: WebhookEvent, state: State) -> None:
    """Set the location of an event about a state that was loaded ``with_names()``."""
    event.component_id = state.component_id
    event.environment_id = state.environment_id
    event.application_id = state.application_id
    named: Any = state
    event.component_slug = named.component_slug
    event.environment_slug = named.environment_slug
    event.application_slug = named.application_slug
    event.data |= {
        "component_id": str(state.component_id),
        "component": named.component_slug,
        "environment_id": str(state.environment_id),
        "environment": named.environment_slug,
        "application_id": None if state.application_id is None else str(state.application_id),
        "application": named.application_slug,
    }


def lock_details(lock: dict[str, Any]) -> dict[str, Any]:
    """Return the published fields of a lock in the audit log."""
    return {name: cut(lock[name]) for name in _LOCK_FIELDS if name in lock}


def _details(event: AuditEvent) -> dict[str, Any]:
    details = event.details
    published = {name: details[name] for name in TYPES[event.action].details if name in details}
    if lock := published.get("lock"):
        published["lock"] = lock_details(lock)
    return {name: cut(value) for name, value in published.items()}


def cut(value: Any) -> Any:
    """Return a value for publication. Shorten a text to the maximum length."""
    return value[:_MAX_TEXT] if isinstance(value, str) else value
