"""The events that a webhook may receive: within its grant and its creator's permissions."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from apikeys.models import AccessToken
from apikeys.scopes import with_included
from infra_service.lib.commandline.isolation import isolated
from infra_service.webhooks.event_types import TYPES
from infra_service.webhooks.models import DisabledPeriod, WebhookEndpoint

if TYPE_CHECKING:
    import datetime as dt
    import uuid

    from apikeys.grants import Grant
    from infra_service.webhooks.models import WebhookEndpointQuerySet, WebhookEvent


class Reach(NamedTuple):
    """An unexpired endpoint with its current grant."""

    endpoint: WebhookEndpoint
    grant: Grant
    disabled_periods: tuple[DisabledPeriod, ...] = ()

    def has(self, event: WebhookEvent) -> bool:
        """Return whether the endpoint may receive the event, apart from its filter."""
        return (
            event.type in self.endpoint.event_types
            and TYPES[event.type].scope in with_included(self.grant.scopes)
            and event.owner_id in (None, self.endpoint.owner_id)
            and event.is_inside(self.grant.binding)
        )

    def subscribes_to(self, event: WebhookEvent) -> bool:
        """Return whether the endpoint may receive the event, and was enabled when it happened."""
        return self.has(event) and self.was_enabled_at(event.observed_at)

    def was_enabled_at(self, moment: dt.datetime) -> bool:
        """Return whether the endpoint existed and was enabled, by the service's clock."""
        since = self.endpoint.disabled_at
        return (
            self.endpoint.created_at <= moment
            and (since is None or moment < since)
            and not any(one.began_at <= moment < one.ended_at for one in self.disabled_periods)
        )


def reaches(among: WebhookEndpointQuerySet | None = None) -> dict[uuid.UUID, Reach]:
    """Return the endpoints, all or among these, that currently receive messages, by id."""
    rows = WebhookEndpoint.objects.all() if among is None else among
    return {one.endpoint.pk: one for one in _reaches(rows.working())}


def subscribers(since: dt.datetime) -> list[Reach]:
    """Return the endpoints that may receive events since the given time.

    The result includes disabled endpoints, which may have been enabled at the time of older events.
    """
    found = _reaches(WebhookEndpoint.objects.granted())
    periods = defaultdict(list)
    ids = [one.endpoint.pk for one in found]
    for period in DisabledPeriod.objects.filter(endpoint__in=ids, ended_at__gt=since):
        periods[period.endpoint_id].append(period)
    return [one._replace(disabled_periods=tuple(periods[one.endpoint.pk])) for one in found]


def _reaches(rows: WebhookEndpointQuerySet) -> list[Reach]:
    endpoints = list(rows.select_related("maker"))
    token_ids = {one.maker_token_id for one in endpoints if one.maker_token_id}
    active = AccessToken.objects.active().select_related("trust_policy")
    tokens = {token.pk: token for token in active.filter(pk__in=token_ids)}
    found = []
    for endpoint in endpoints:
        with isolated("read the grant of a webhook", endpoint.pk):
            grant = endpoint.grant
            if endpoint.maker is not None:
                grant = grant.intersection(endpoint.maker.grant)
            if endpoint.maker_token_id:
                token = tokens.get(endpoint.maker_token_id)
                if token is None:
                    continue
                grant = grant.intersection(token.grant)
                if token.trust_policy is not None:
                    grant = grant.intersection(token.trust_policy.grant)
            found.append(Reach(endpoint, grant))
    return found
