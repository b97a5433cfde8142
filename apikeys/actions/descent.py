"""Effects of changes to a key on its descendants: all keys and policies that derive from it.

A descendant never exceeds the scopes, binding and expiry of the key that created it. The service
enforces this limit when it creates a key or policy. A change that narrows a key also narrows its
descendants in the same transaction. A request therefore reads a single key, not the whole chain.

The functions lock each generation before they read the next. Creating a key locks its parent, so a
concurrent revocation either finds the new key or prevents its creation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apikeys import audit
from apikeys.actions.audited_changes import described, differences
from apikeys.errors import ApiKeyRevoked
from apikeys.models import AccessToken, ApiKey, TrustPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apikeys.actors import Actor
    from apikeys.grants import Grant
    from apikeys.querysets import ApiKeyQuerySet, TrustPolicyQuerySet


def check_parent(key: ApiKey | TrustPolicy, held: Grant, wanted: Grant) -> None:
    """Refuse a key or policy with a grant beyond its parent's.

    The parent is locked until the transaction ends.

    Raises:
        ApiKeyRevoked: the parent is revoked. Expired descendants are not revoked with their parent.
        GrantExceeded: the grant exceeds the parent's.
    """
    if key.maker_id is None:
        return
    parent = ApiKey.objects.locked().get(pk=key.maker_id)
    most, revocations = parent.grant, [parent.revoked_at]
    if key.maker_token_id:
        tokens = AccessToken.objects.locked()
        token = tokens.filter(pk=key.maker_token_id).first()
        # A missing token was removed after it expired, so its grant is unknown.
        most = most.intersection(held if token is None else token.grant)
        revocations += [] if token is None else [token.revoked_at]
    if any(revocations):
        raise ApiKeyRevoked("The parent key or token is revoked, so this key is revoked too.")
    most.check(wanted, "The parent of this key")


def revoke(made: ApiKeyQuerySet, ancestor_id: str, actor: Actor) -> int:
    """Revoke these keys and all their descendants, and return the number of revoked keys."""
    revoked = 0
    while generation := _lock(made):
        ApiKey.objects.revoke(*generation)
        because = {"ancestor": ancestor_id}
        audit.record_consequences(actor, "api_key.revoke", dict.fromkeys(generation, because))
        disable_policies(TrustPolicy.objects.filter(maker__in=generation), ancestor_id, actor)
        revoked += len(generation)
        made = ApiKey.objects.filter(maker__in=generation)
    return revoked


def narrow(ancestor_id: str, grant: Grant, actor: Actor) -> None:
    """Remove from all descendants the permissions that the key has lost.

    Revoke each descendant that is left without scopes, with an empty binding, or with too many
    networks.
    """
    parents = {ancestor_id: grant}
    while parents:
        keys = _lock(ApiKey.objects.filter(maker__in=parents))
        narrowed = _narrow(keys, parents, "api_key.update", ancestor_id, actor)
        policies = _lock_policies(TrustPolicy.objects.filter(maker__in=parents))
        _narrow(policies, parents, "trust_policy.update", ancestor_id, actor)
        parents = narrowed


def disable_policies(policies: TrustPolicyQuerySet, ancestor_id: str, actor: Actor) -> None:
    """Disable the policies of a revoked parent, which also invalidates their tokens."""
    if ids := _lock_policies(policies):
        TrustPolicy.objects.disable(*ids)
        because = {"ancestor": ancestor_id}
        audit.record_consequences(actor, "trust_policy.disable", dict.fromkeys(ids, because))


def lock_credentials(key_id: str | None, token_id: str) -> None:
    """Lock a key and a token until the transaction ends, so that a revocation finds new rows."""
    list(ApiKey.objects.locked().filter(pk=key_id).values_list("pk"))
    list(AccessToken.objects.locked().filter(pk=token_id).values_list("pk"))


def _lock_policies(policies: TrustPolicyQuerySet) -> dict[str, TrustPolicy]:
    locked = policies.filter(disabled_at=None).locked()
    return {policy.pk: policy for policy in locked.order_by("pk")}


def _lock(keys: ApiKeyQuerySet) -> dict[str, ApiKey]:
    locked = keys.active().locked()
    return {key.pk: key for key in locked.order_by("pk")}


def _narrow(
    rows: Mapping[str, ApiKey] | Mapping[str, TrustPolicy],
    parents: Mapping[str, Grant],
    action: str,
    ancestor_id: str,
    actor: Actor,
) -> dict[str, Grant]:
    """Limit keys or policies to the grants of their parents, and return the changed grants."""
    changes: dict[str, Mapping[str, Any]] = {}
    narrowed: dict[str, Grant] = {}
    for row in rows.values():
        parent = parents[row.maker_id or ""]
        if row.grant.is_within(parent):
            continue
        left = row.grant.intersection(parent)
        if left.is_empty or left.networks.is_over_limit:
            if isinstance(row, ApiKey):
                revoke(ApiKey.objects.filter(pk=row.pk), ancestor_id, actor)
            else:
                disable_policies(TrustPolicy.objects.filter(pk=row.pk), ancestor_id, actor)
            continue
        before = described(row)
        type(row).objects.filter(pk=row.pk).change(**left.columns())
        for column, value in left.columns().items():
            setattr(row, column, value)
        changes[row.pk] = differences(before, described(row)) | {"ancestor": ancestor_id}
        narrowed[row.pk] = left
    audit.record_consequences(actor, action, changes)
    return narrowed
