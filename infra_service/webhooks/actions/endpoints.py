"""Create, change, enable, disable and delete endpoints, and rotate their secrets."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.utils import timezone

from apikeys import audit
from apikeys.actions.audited_changes import differences
from apikeys.actions.rules import creator_columns, refuse_expired, refuse_retired
from apikeys.models import User
from apikeys.races import accept
from infra_service.lib.api.parameters import InvalidParameter
from infra_service.lib.commandline.isolation import isolated
from infra_service.lib.database.retries import retrying
from infra_service.lib.http_client.errors import FetchError
from infra_service.webhooks import audit_reader, health_changes, secrets
from infra_service.webhooks.errors import (
    TooManyWebhooks,
    WebhookDisabledByOperator,
    WebhookNotFound,
)
from infra_service.webhooks.event_types import AUDIT, scopes_of
from infra_service.webhooks.models import (
    BOTH_SIGN,
    BY_OPERATOR,
    DISABLED,
    MAX_ENDPOINTS,
    Delivery,
    WebhookEndpoint,
    origin_of,
)
from infra_service.webhooks.sending import refuse_undeliverable

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Callable, Mapping

    from apikeys.actors import Actor
    from apikeys.grants import Default
    from infra_service.webhooks.models import WebhookEndpointQuerySet

_CHANGED: Final = ("name", "url", "event_types", "filter", "format")
_CHANGED_COLUMNS: Final = (
    "name", "stored_url", "encrypted_url", "event_types", "filter", "format",
    "scopes", "expires_at", "disabled_at", "disabled_reason",
)  # fmt: skip


@retrying
@transaction.atomic
def create_endpoint(
    *,
    owner_id: uuid.UUID,
    fields: Mapping[str, Any],
    expires_at: dt.datetime | Default | None,
    actor: Actor,
) -> tuple[WebhookEndpoint, str]:
    """Create an endpoint with the actor's binding. Return the endpoint and its secret.

    Raises:
        GrantExceeded: the events require a scope that the actor lacks, or the endpoint would expire
            after the actor.
        InvalidParameter: the URL is malformed or not allowed, or the format does not support the
            events.
        TooManyWebhooks: the owner has reached the limit.
        SecretRetired: the actor's secret was replaced.
        ExpiryPast: the expiry is in the past.
    """
    refuse_retired(actor)
    grant = actor.grant.delegated(scopes_of(fields["event_types"]), None, expires_at)
    _check_url(fields["url"])
    _check_format(fields.get("format"), fields["event_types"])
    User.objects.lock(owner_id)
    if WebhookEndpoint.objects.filter(owner_id=owner_id).count() >= MAX_ENDPOINTS:
        raise TooManyWebhooks(MAX_ENDPOINTS)
    secret = secrets.new_secret()
    endpoint = WebhookEndpoint(owner_id=owner_id, **_attributes(fields), **grant.columns())
    endpoint.secret, endpoint.encryption_key = secrets.encrypt(secret, endpoint.pk)
    for column, value in creator_columns(actor).items():
        setattr(endpoint, column, value)
    refuse_expired(endpoint)
    audit_reader.begin()
    if health_changes.TYPE in endpoint.event_types:
        health_changes.begin()
    audit.authorize_and_record(
        actor, "webhook.create", endpoint.pk, **_audit_details(_described(endpoint))
    )
    endpoint.save(force_insert=True)
    return endpoint, secrets.shown(secret)


@retrying
@transaction.atomic
def change_endpoint(
    *,
    endpoints: WebhookEndpointQuerySet,
    endpoint_id: uuid.UUID,
    changes: Mapping[str, Any],
    actor: Actor,
) -> None:
    """Change an endpoint. The key or token that created it still limits its grant.

    Raises:
        WebhookNotFound: the endpoint is not in ``endpoints``.
        WebhookDisabledByOperator: the owner tries to enable an endpoint that an operator disabled.
        GrantExceeded: the actor lacks permissions for the events that the endpoint would receive.
        InvalidParameter, SecretRetired, ExpiryPast: as for ``create_endpoint``.
    """
    endpoint = _locked(endpoints, endpoint_id, actor)
    if changes.get("is_enabled") and endpoint.is_blocked:
        raise WebhookDisabledByOperator
    _change(endpoint, changes, actor)


@retrying
@transaction.atomic
def enable_endpoint(
    *, endpoint_id: uuid.UUID, actor: Actor, check: Callable[[WebhookEndpoint], None] = accept
) -> None:
    """Enable an endpoint as an operator, regardless of the reason why it was disabled.

    ``check`` raises an error if the endpoint must stay disabled.

    Raises:
        WebhookNotFound: the endpoint was deleted.
        ExpiryPast: the endpoint has expired.
    """
    endpoint = _locked(WebhookEndpoint.objects.all(), endpoint_id, actor)
    check(endpoint)
    _change(endpoint, {"is_enabled": True}, actor)


def _change(endpoint: WebhookEndpoint, changes: Mapping[str, Any], actor: Actor) -> None:
    before = _described(endpoint)
    # An unchanged status keeps ``disabled_reason``, because an owner cannot undo the decision of an
    # operator. An unchanged URL may be forbidden now, or be only the origin of an unreadable URL.
    now = {"is_enabled": endpoint.is_enabled, "url": before["url"]}
    changes = {name: value for name, value in changes.items() if value != now.get(name, ...)}
    if changes.get("is_enabled"):
        endpoint.record_disabled_period(ended_at=timezone.now())
    if "url" in changes:
        _check_url(changes["url"])
    for name, value in _attributes(changes).items():
        setattr(endpoint, name, value)
    _check_format(endpoint.format, endpoint.event_types)
    endpoint.scopes = sorted(scopes_of(endpoint.event_types))
    endpoint.expires_at = changes.get("expires_at", endpoint.expires_at)
    changed = differences(before, _described(endpoint))
    if not changed:
        return
    _check_grant(endpoint, actor)
    if "expires_at" in changed or changes.get("is_enabled"):
        refuse_expired(endpoint)
    if health_changes.TYPE in endpoint.event_types:
        health_changes.begin()
    audit.authorize_and_record(actor, "webhook.update", endpoint.pk, **_audit_details(changed))
    columns = {column: getattr(endpoint, column) for column in _CHANGED_COLUMNS}
    WebhookEndpoint.objects.filter(pk=endpoint.pk).change(updated_at=timezone.now(), **columns)


@retrying
@transaction.atomic
def rotate_secret(
    *,
    endpoints: WebhookEndpointQuerySet,
    endpoint_id: uuid.UUID,
    actor: Actor,
    check: Callable[[WebhookEndpoint], None] = accept,
) -> str:
    """Replace the secret, and return the new secret. The replaced secret also signs for a day.

    ``check`` raises an error if the secret must not be rotated.

    Raises:
        WebhookNotFound: the endpoint is not in ``endpoints``.
        GrantExceeded: the actor lacks permissions for the events that the endpoint receives.
        SecretRetired: the actor's secret was replaced.
    """
    endpoint = _locked(endpoints, endpoint_id, actor)
    check(endpoint)
    _check_grant(endpoint, actor, expires_at=actor.grant.expires_at)
    secret = secrets.new_secret()
    encrypted, key_name = secrets.encrypt(secret, endpoint.pk)
    audit.authorize_and_record(actor, "webhook.rotate_secret", endpoint.pk)
    now = timezone.now()
    WebhookEndpoint.objects.filter(pk=endpoint.pk).change(
        secret=encrypted,
        encryption_key=key_name,
        retired_secret=endpoint.secret,
        retired_encryption_key=endpoint.encryption_key,
        retired_secret_until=now + BOTH_SIGN,
        updated_at=now,
    )
    return secrets.shown(secret)


@retrying
@transaction.atomic
def delete_endpoint(
    *, endpoints: WebhookEndpointQuerySet, endpoint_id: uuid.UUID, actor: Actor
) -> None:
    """Delete an endpoint and all of its deliveries.

    Raises:
        WebhookNotFound: the endpoint is not in ``endpoints``.
        SecretRetired: the actor's secret was replaced.
    """
    # Publishers create deliveries of endpoints that they read earlier in their transaction.
    audit_reader.pause_publishers()
    endpoint = _locked(endpoints, endpoint_id, actor)
    audit.authorize_and_record(actor, "webhook.delete", endpoint.pk, name=endpoint.name)
    Delivery.objects.filter(endpoint=endpoint).delete()
    endpoint.delete()


@retrying
@transaction.atomic
def disable_endpoint(*, endpoint_id: uuid.UUID, reason: str, actor: Actor) -> None:
    """Disable an endpoint for its receiver or for an operator, and fail its waiting deliveries.

    An operator's reason replaces any other reason.
    """
    endpoint = _row_locked(WebhookEndpoint.objects.all(), endpoint_id)
    if endpoint is None:
        return
    is_overruled = reason == BY_OPERATOR and not endpoint.is_blocked
    if endpoint.is_enabled or is_overruled:
        now = timezone.now()
        endpoint.record_disabled_period(ended_at=now)
        WebhookEndpoint.objects.filter(pk=endpoint_id).change(
            disabled_at=now, disabled_reason=reason
        )
        audit.authorize_and_record(actor, "webhook.disable", endpoint_id, reason=reason)
    Delivery.objects.waiting().filter(endpoint_id=endpoint_id).update(
        status=Delivery.Status.FAILED, next_attempt_at=None, error=DISABLED
    )


def reencrypt_secrets() -> int:
    """Encrypt secrets and URLs with the first key, and return the number of changed endpoints.

    An unreadable value stays unchanged. The failed deliveries inform the owner.
    """
    done = 0
    for endpoint in WebhookEndpoint.objects.with_secrets_of_other_keys():
        with isolated("encrypt the secrets of a webhook", endpoint.pk):
            changes = endpoint.reencrypted()
            if changes:
                done += WebhookEndpoint.objects.as_seen(endpoint).change(**changes)
    return done


def _locked(
    endpoints: WebhookEndpointQuerySet, endpoint_id: uuid.UUID, actor: Actor
) -> WebhookEndpoint:
    refuse_retired(actor)
    endpoint = _row_locked(endpoints, endpoint_id)
    if endpoint is None:
        raise WebhookNotFound
    return endpoint


def _row_locked(
    endpoints: WebhookEndpointQuerySet, endpoint_id: uuid.UUID
) -> WebhookEndpoint | None:
    rows = endpoints.select_for_update(no_key=True, of=("self",))
    endpoint: WebhookEndpoint | None = rows.filter(pk=endpoint_id).first()
    return endpoint


def _check_grant(endpoint: WebhookEndpoint, actor: Actor, **changes: Any) -> None:
    """Refuse an actor that lacks permissions of the endpoint, which has no networks of its own.

    Raises:
        GrantExceeded: the scopes, binding or expiry exceed the actor's grant.
    """
    grant = dataclasses.replace(endpoint.grant, networks=actor.grant.networks, **changes)
    actor.grant.check(grant)


def _attributes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes for the fields of a request. ``is_enabled`` sets two of them."""
    attributes = {name: fields[name] for name in _CHANGED if name in fields}
    if "is_enabled" in fields:
        is_enabled = fields["is_enabled"]
        attributes["disabled_at"] = None if is_enabled else timezone.now()
        attributes["disabled_reason"] = "" if is_enabled else "OWNER"
    return attributes


def _described(endpoint: WebhookEndpoint) -> dict[str, Any]:
    """Return the properties that the owner controls."""
    expires_at = endpoint.expires_at
    return {
        **{name: getattr(endpoint, name) for name in _CHANGED},
        "expires_at": None if expires_at is None else expires_at.isoformat(),
        "enabled": endpoint.is_enabled,
    }


def _audit_details(details: dict[str, Any]) -> dict[str, Any]:
    """Return the details for the audit log. A URL can contain a secret, so record its origin."""
    url = details.get("url")
    if url is None:
        return details
    if isinstance(url, str):
        return {**details, "url": origin_of(url)}
    return {**details, "url": {when: origin_of(one) for when, one in url.items()}}


def _check_url(url: str) -> None:
    try:
        refuse_undeliverable(url)
    except FetchError as error:
        raise InvalidParameter("url", f"This URL cannot receive messages: {error}.") from error


def _check_format(format_: str | None, event_types: list[str]) -> None:
    """Reject events that OCSF API Activity cannot describe, as they lack an actor and address."""
    if format_ == WebhookEndpoint.Format.OCSF and event_types != [AUDIT]:
        raise InvalidParameter("event_types", f"The format ocsf supports only the event {AUDIT}.")
