"""What is done with API keys.

Two changes at the same moment are decided by conditional updates: who loses reads again and is
judged again.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.utils import timezone

from apikeys import audit, tokens
from apikeys.actions.trail import described
from apikeys.errors import (
    ApiKeyExpired,
    ApiKeyNotFound,
    ApiKeyRevoked,
    ConcurrentChange,
)
from apikeys.grants import Binding, Grant
from apikeys.models import ApiKey
from apikeys.tokens import TokenKind

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping

    from apikeys.audit import Actor
    from apikeys.callers import Caller
    from apikeys.querysets import ApiKeyQuerySet

MAX_GRACE_PERIOD: Final = dt.timedelta(days=7)

# Each attempt is lost only to another writer's success.
_ATTEMPTS: Final = 20


@transaction.atomic
def create_api_key(
    *,
    user_id: uuid.UUID,
    name: str,
    scopes: Iterable[str],
    expires_at: dt.datetime | None,
    actor: Actor,
    binding: Binding | None = None,
) -> tuple[ApiKey, str]:
    """Create a key; return it with its secret, kept nowhere. Unless said, it is bound as the actor.

    Raises:
        GrantExceeded: it would hold more than the actor.
    """
    grant = Grant(frozenset(scopes), actor.grant.binding if binding is None else binding)
    actor.grant.check(grant)
    secret = tokens.generate(TokenKind.API_KEY)
    key = ApiKey(
        created_by_id=user_id,
        name=name,
        scopes=sorted(grant.scopes),
        digest=tokens.digest(secret),
        expires_at=expires_at,
        **grant.binding.columns(),
    )
    key.save(force_insert=True)
    audit.record(actor, "api_key.create", key.pk, **described(key))
    return key, secret


def change_api_key(
    *, keys: ApiKeyQuerySet, key_id: str, changes: Mapping[str, Any], actor: Actor
) -> None:
    """Change ``name``, ``scopes``, ``expires_at`` or ``binding`` of one of these keys.

    Raises:
        ApiKeyNotFound: it is none of these.
        ApiKeyRevoked, ApiKeyExpired: it cannot be changed any more, or only be extended.
        GrantExceeded: it would get more power, or more time, than the actor may give.
        ConcurrentChange: lost the race too often.
    """
    for _ in range(_ATTEMPTS):
        key = _find_key(keys, key_id)
        _check_change(key, changes, actor)
        before = described(key)
        for field, value in _columns(changes).items():
            setattr(key, field, value)
        after = described(key)
        changed = {name: {"from": before[name], "to": after[name]} for name in after}
        changed = {
            name: change for name, change in changed.items() if change["from"] != change["to"]
        }
        if not changed:
            return
        with transaction.atomic():
            if ApiKey.objects.as_seen(key).change(**_columns(changes)):
                audit.record(actor, "api_key.update", key.pk, **changed)
                return
    raise ConcurrentChange


def _check_change(key: ApiKey, changes: Mapping[str, Any], actor: Actor) -> None:
    if key.revoked_at is not None:
        raise ApiKeyRevoked
    expires_at = changes.get("expires_at", key.expires_at)
    if "expires_at" not in changes and _has_expired(key):
        raise ApiKeyExpired
    wanted = Grant(
        frozenset(changes.get("scopes", key.scopes)), changes.get("binding", key.binding)
    )
    # More time is more power: a key that is nearly over would otherwise be kept alive by any other.
    prolonged = key.expires_at is not None and (expires_at is None or expires_at > key.expires_at)
    if prolonged or not wanted.is_within(key.grant):
        actor.grant.check(wanted)


def _columns(changes: Mapping[str, Any]) -> dict[str, Any]:
    columns = {name: changes[name] for name in ("name", "expires_at") if name in changes}
    if "scopes" in changes:
        columns["scopes"] = sorted(set(changes["scopes"]))
    if "binding" in changes:
        columns |= changes["binding"].columns()
    return columns


def rotate_api_key(
    *,
    keys: ApiKeyQuerySet,
    key_id: str,
    grace_period: dt.timedelta,
    actor: Actor,
    caller: Caller | None = None,
) -> str:
    """Give one of these keys a new secret and return it; the old one works for the grace period.

    Raises:
        ApiKeyNotFound: it is none of these.
        ApiKeyRevoked, ApiKeyExpired: it has no secret that works.
        GrantExceeded: the key holds more than the actor.
        ConcurrentChange: another rotation was faster; its secret is the one that counts.
    """
    seen = None
    for _ in range(_ATTEMPTS):
        key = _find_key(keys, key_id)
        if key.revoked_at is not None:
            raise ApiKeyRevoked
        if _has_expired(key):
            raise ApiKeyExpired
        if seen not in (None, bytes(key.digest)) or _was_rotated_away(key, caller):
            raise ConcurrentChange
        actor.grant.check(key.grant)
        seen, secret = bytes(key.digest), tokens.generate(TokenKind.API_KEY)
        values: dict[str, Any] = {"digest": tokens.digest(secret)}
        values |= {"previous_digest": None, "previous_digest_expires_at": None}
        if grace_period:
            values["previous_digest"] = seen
            values["previous_digest_expires_at"] = timezone.now() + grace_period
        with transaction.atomic():
            if ApiKey.objects.as_seen(key).change(**values):
                seconds = int(grace_period.total_seconds())
                audit.record(actor, "api_key.rotate", key.pk, grace_period_seconds=seconds)
                return secret
    raise ConcurrentChange


def _was_rotated_away(key: ApiKey, caller: Caller | None) -> bool:
    """Whether the key rotates itself with a secret that stopped working since it was let in."""
    if caller is None or caller.token_id != key.pk or caller.digest == bytes(key.digest):
        return False
    until = key.previous_digest_expires_at
    previous = None if key.previous_digest is None else bytes(key.previous_digest)
    return caller.digest != previous or until is None or until <= timezone.now()


@transaction.atomic
def revoke_api_key(*, key: ApiKey, actor: Actor) -> bool:
    """Revoke the key, and with it all that was minted from it; return whether it was not before."""
    revoked = bool(ApiKey.objects.revoke(key.pk))
    if revoked:
        audit.record(actor, "api_key.revoke", key.pk)
    return revoked


def _find_key(keys: ApiKeyQuerySet, key_id: str) -> ApiKey:
    key: ApiKey | None = keys.filter(pk=key_id).first()
    if key is None:
        raise ApiKeyNotFound
    return key


def _has_expired(key: ApiKey) -> bool:
    return key.expires_at is not None and key.expires_at <= timezone.now()
