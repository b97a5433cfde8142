"""Create, change, rotate and revoke API keys."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from apikeys import audit, tokens
from apikeys.actions import descent
from apikeys.actions.audited_changes import change_and_record, described, differences
from apikeys.actions.rules import (
    changed_grant,
    creator_columns,
    refuse_expired,
    refuse_retired,
)
from apikeys.errors import (
    ApiKeyExpired,
    ApiKeyNotFound,
    ApiKeyRevoked,
    ConcurrentChange,
    GracePeriodOutOfRange,
)
from apikeys.grants import Default
from apikeys.identifiers import api_key_id
from apikeys.models import ApiKey, TrustPolicy
from apikeys.races import RaceLostError, accept, compare_and_swap
from apikeys.tokens import TokenKind
from infra_service.lib.database.retries import retrying

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterable, Mapping

    from apikeys.actors import Actor
    from apikeys.bindings import Binding
    from apikeys.networks import Networks
    from apikeys.querysets import ApiKeyQuerySet

#: The maximum time for which the previous secret stays valid after a rotation.
MAX_GRACE_PERIOD: Final = dt.timedelta(days=7)


@retrying
@transaction.atomic
def create_api_key(
    *,
    user_id: uuid.UUID,
    name: str,
    scopes: Iterable[str],
    actor: Actor,
    expires_at: dt.datetime | Default | None = Default.EXPIRY,
    binding: Binding | None = None,
    allowed_networks: Networks | None = None,
) -> tuple[ApiKey, str]:
    """Create a key. Return the key and its secret, which is not stored.

    The binding, expiry and networks default to those of the actor.

    Raises:
        GrantExceeded: the key would exceed the actor's grant or expiry.
        SecretRetired: the actor's secret was replaced.
        ExpiryPast: the expiry is in the past.
    """
    refuse_retired(actor)
    grant = actor.grant.delegated(scopes, binding, expires_at, allowed_networks)
    secret = tokens.generate(TokenKind.API_KEY)
    key = ApiKey(
        **actor.dated("created_at", api_key_id),
        created_by_id=user_id,
        name=name,
        digest=tokens.digest(secret),
        **grant.columns(),
        **creator_columns(actor),
    )
    refuse_expired(key)
    audit.lock_owner(actor)
    audit.record_key_activation(actor, "api_key.create", key.pk, **described(key))
    key.save(force_insert=True)
    return key, secret


@compare_and_swap(ConcurrentChange)
def change_api_key(
    *, keys: ApiKeyQuerySet, key_id: str, changes: Mapping[str, Any], actor: Actor
) -> None:
    """Change the name or the grant of a key in the queryset.

    Descendant keys lose the permissions that the key loses.

    Raises:
        ApiKeyNotFound: the queryset does not contain the key.
        ApiKeyRevoked, ApiKeyExpired: the key is revoked, or has expired and is not extended.
        GrantExceeded: the key would exceed the grant or expiry of the actor or of its creator.
        TooManyApiKeys: an expired key would become active, but its owner has the maximum number of
            active keys.
        SecretRetired: the actor's secret was replaced.
        ConcurrentChange: every attempt conflicted with another writer.
    """
    refuse_retired(actor)
    key = _find_key(keys, key_id)
    _refuse_ended(key, is_extended="expires_at" in changes)
    held, wanted = key.grant, changed_grant(key, changes, actor)
    grows, revives = not wanted.is_within(held), key.has_expired
    if grows:
        actor.grant.check(wanted)
    before = described(key)
    values = {"name": changes.get("name", key.name), **wanted.columns()}
    for field, value in values.items():
        setattr(key, field, value)
    changed = differences(before, described(key))
    if not changed:
        return
    as_seen = ApiKey.objects.as_seen(key)
    with transaction.atomic():
        if revives:
            audit.lock_owner(actor)
        if grows:
            descent.check_parent(key, held, wanted)
        if not change_and_record(
            key.pk,
            as_seen,
            values,
            actor=actor,
            action="api_key.update",
            record=audit.record_key_activation if revives else audit.authorize_and_record,
            **changed,
        ):
            raise RaceLostError
        if not held.is_within(wanted):
            descent.narrow(key.pk, wanted, actor)


def rotate_api_key(
    *,
    keys: ApiKeyQuerySet,
    key_id: str,
    grace_period: dt.timedelta,
    actor: Actor,
    check: Callable[[ApiKey], None] = accept,
) -> str:
    """Replace the secret of a key, and return the new secret.

    The old secret works for the grace period, and an older one no longer. ``check`` raises an error
    if the key must not be rotated.

    Raises:
        ApiKeyNotFound: the queryset does not contain the key.
        ApiKeyRevoked, ApiKeyExpired: the key is revoked or has expired.
        GrantExceeded: the key exceeds the actor's grant or expiry.
        SecretRetired: the actor's secret was replaced.
        ConcurrentChange: a concurrent rotation completed first, and only its secret is valid.
        GracePeriodOutOfRange: the grace period exceeds the maximum.
    """
    if not dt.timedelta(0) <= grace_period <= MAX_GRACE_PERIOD:
        raise GracePeriodOutOfRange(MAX_GRACE_PERIOD)
    refuse_retired(actor)
    seen = None

    @compare_and_swap(ConcurrentChange)
    def rotate(*, actor: Actor) -> str:
        nonlocal seen
        key = _find_key(keys, key_id)
        _refuse_ended(key)
        if seen not in (None, bytes(key.digest)):
            raise ConcurrentChange
        check(key)
        actor.grant.check(key.grant)
        seen, secret = bytes(key.digest), tokens.generate(TokenKind.API_KEY)
        now = timezone.now()
        values: dict[str, Any] = {
            "digest": tokens.digest(secret),
            "rotated_at": now,
            "previous_digest": seen,
            # Without a grace period, the old digest stays, so that the service recognizes the use
            # of the old secret. Its expiry is then the creation of the key, which is in the past.
            "previous_digest_expires_at": now + grace_period if grace_period else key.created_at,
        }
        seconds = int(grace_period.total_seconds())
        as_seen = ApiKey.objects.as_seen(key)
        with transaction.atomic():
            if not change_and_record(
                key.pk,
                as_seen,
                values,
                actor=actor,
                action="api_key.rotate",
                grace_period_seconds=seconds,
            ):
                raise RaceLostError
        return secret

    return rotate(actor=actor)


@retrying
@transaction.atomic
def revoke_api_key(*, key: ApiKey, actor: Actor) -> int:
    """Revoke the key and all its descendant keys and tokens, and disable their policies.

    Return the number of revoked keys: 0 if the key was already revoked.

    Raises:
        SecretRetired: the actor's secret was replaced.
    """
    refuse_retired(actor)
    working = ApiKey.objects.filter(pk=key.pk, revoked_at=None)
    revocation = {"revoked_at": Now()}
    if not change_and_record(key.pk, working, revocation, actor=actor, action="api_key.revoke"):
        return 0
    descent.disable_policies(TrustPolicy.objects.filter(maker=key.pk), key.pk, actor)
    return 1 + descent.revoke(ApiKey.objects.filter(maker=key.pk), key.pk, actor)


def _find_key(keys: ApiKeyQuerySet, key_id: str) -> ApiKey:
    key: ApiKey | None = keys.filter(pk=key_id).first()
    if key is None:
        raise ApiKeyNotFound
    return key


def _refuse_ended(key: ApiKey, *, is_extended: bool = False) -> None:
    if key.revoked_at is not None:
        raise ApiKeyRevoked
    if key.has_expired and not is_extended:
        raise ApiKeyExpired
