"""What an endpoint may be told now: what it was made for, and its maker may still read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apikeys.models import AccessToken
from apikeys.scopes import with_included
from infra_service.webhooks.event_types import TYPES
from infra_service.webhooks.models import WebhookEndpoint

if TYPE_CHECKING:
    import uuid

    from apikeys.grants import Grant
    from infra_service.webhooks.models import WebhookEvent


class Reach(NamedTuple):
    """An endpoint that works, and what it may be told."""

    endpoint: WebhookEndpoint
    grant: Grant

    def has(self, event: WebhookEvent) -> bool:
        """Whether it may be told of the event, and wants to be, but for its filter."""
        return (
            event.type in self.endpoint.event_types
            and event.occurred_at >= self.endpoint.created_at
            and TYPES[event.type].scope in with_included(self.grant.scopes)
            and event.owner_id in (None, self.endpoint.owner_id)
            and event.is_inside(self.grant.binding)
        )


def reaches() -> dict[uuid.UUID, Reach]:
    """Return all endpoints that work, by their ids, with what they may be told."""
    endpoints = list(WebhookEndpoint.objects.working().select_related("maker"))
    token_ids = {one.maker_token_id for one in endpoints if one.maker_token_id}
    tokens = {token.pk: token for token in AccessToken.objects.active().filter(pk__in=token_ids)}
    found = {}
    for endpoint in endpoints:
        grant = endpoint.grant
        if endpoint.maker is not None:
            grant = grant.intersection(endpoint.maker.grant)
        if endpoint.maker_token_id:
            token = tokens.get(endpoint.maker_token_id)
            if token is None:
                continue
            grant = grant.intersection(token.grant)
        found[endpoint.pk] = Reach(endpoint, grant)
    return found
