"""Send a test message, and redeliver an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone
from uuid_utils.compat import uuid7

from apikeys import audit
from apikeys.actions.rules import refuse_retired
from infra_service.lib.database.retries import retrying
from infra_service.webhooks.errors import WebhookDisabled, WebhookDisabledByOperator
from infra_service.webhooks.event_types import TEST
from infra_service.webhooks.models import Delivery, WebhookEvent

if TYPE_CHECKING:
    from apikeys.actors import Actor
    from infra_service.webhooks.models import WebhookEndpoint


@retrying
@transaction.atomic
def send_test(*, endpoint: WebhookEndpoint, actor: Actor) -> Delivery:
    """Create the delivery of an empty test message and return it.

    Raises:
        WebhookDisabled, WebhookDisabledByOperator: the endpoint is disabled.
        SecretRetired: the actor's secret was replaced.
    """
    refuse_retired(actor)
    _refuse_disabled(endpoint)
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
        WebhookDisabled, WebhookDisabledByOperator: the endpoint is disabled.
        SecretRetired: the actor's secret was replaced.
    """
    refuse_retired(actor)
    _refuse_disabled(delivery.endpoint)
    audit.authorize_and_record(
        actor, "webhook.redeliver", delivery.endpoint_id, delivery=delivery.pk
    )
    Delivery.objects.filter(pk=delivery.pk).update(
        status=Delivery.Status.WAITING, next_attempt_at=timezone.now(), attempts=0, claim=None
    )


def _refuse_disabled(endpoint: WebhookEndpoint) -> None:
    if endpoint.disabled_at is not None:
        raise WebhookDisabledByOperator if endpoint.is_blocked else WebhookDisabled
