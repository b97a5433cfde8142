"""Send a test message, and redeliver an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from apikeys import audit
from apikeys.actions.rules import refuse_retired
from infra_service.lib.database.retries import retrying
from infra_service.lib.uuids import uuid7
from infra_service.webhooks.errors import (
    DeliveryNotFound,
    WebhookDisabled,
    WebhookDisabledByOperator,
    WebhookNotFound,
)
from infra_service.webhooks.event_types import TEST
from infra_service.webhooks.models import Delivery, WebhookEndpoint, WebhookEvent

if TYPE_CHECKING:
    import uuid

    from apikeys.actors import Actor


@retrying
@transaction.atomic
def send_test(*, endpoint: WebhookEndpoint, actor: Actor) -> Delivery:
    """Create the delivery of an empty test message and return it.

    Raises:
        WebhookNotFound: the endpoint was deleted.
        WebhookDisabled, WebhookDisabledByOperator: the endpoint is disabled.
        SecretRetired: the actor's secret was replaced.
    """
    refuse_retired(actor)
    endpoint = _locked(endpoint.pk)
    resource_id = str(endpoint.pk)
    event = WebhookEvent.objects.create(
        id=uuid7(),
        type=TEST,
        occurred_at=timezone.now(),
        resource_id=resource_id,
        owner_id=endpoint.owner_id,
        data={"id": resource_id, "name": endpoint.name},
    )
    audit.authorize_and_record(actor, "webhook.test", endpoint.pk)
    return Delivery.objects.create(endpoint=endpoint, event=event, resource_id=resource_id)


@retrying
@transaction.atomic
def redeliver(*, delivery: Delivery, actor: Actor) -> None:
    """Send an event again with the same message id, and reset the number of attempts.

    Raises:
        WebhookNotFound, DeliveryNotFound: the endpoint or the delivery was deleted.
        WebhookDisabled, WebhookDisabledByOperator: the endpoint is disabled.
        SecretRetired: the actor's secret was replaced.
    """
    refuse_retired(actor)
    _locked(delivery.endpoint_id)
    audit.authorize_and_record(
        actor, "webhook.redeliver", delivery.endpoint_id, delivery=delivery.pk
    )
    delivery.status, delivery.next_attempt_at = Delivery.Status.WAITING, timezone.now()
    delivery.attempts, delivery.claim = 0, None
    names = ("status", "next_attempt_at", "attempts", "claim")
    changed = {name: getattr(delivery, name) for name in names}
    if not Delivery.objects.filter(pk=delivery.pk).update(**changed):
        raise DeliveryNotFound


def _locked(endpoint_id: uuid.UUID) -> WebhookEndpoint:
    """Lock an enabled endpoint until the transaction ends."""
    rows = WebhookEndpoint.objects.select_for_update(no_key=True, of=("self",))
    endpoint: WebhookEndpoint | None = rows.filter(pk=endpoint_id).first()
    if endpoint is None:
        raise WebhookNotFound
    if endpoint.disabled_at is not None:
        raise WebhookDisabledByOperator if endpoint.is_blocked else WebhookDisabled
    return endpoint
