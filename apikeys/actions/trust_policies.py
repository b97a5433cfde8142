"""Create, change, disable and test trust policies: trusted pipelines and their grants.

A policy delegates its full grant, so the same rules apply as for API keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from apikeys import audit
from apikeys.actions import descent
from apikeys.actions.audited_changes import change_and_record, described, differences
from apikeys.actions.rules import (
    changed_grant,
    creator_columns,
    refuse_expired,
    refuse_retired,
)
from apikeys.federation import kinds
from apikeys.federation.assertions import verify
from apikeys.federation.conditions import are_met, check
from apikeys.federation.errors import (
    FieldFixed,
    IssuerUnusable,
    TrustPolicyDisabled,
    TrustPolicyNotFound,
    TrustPolicyTooWide,
)
from apikeys.federation.exchange_errors import AssertionRefused
from apikeys.grants import Default
from apikeys.models import Issuer, TrustPolicy, User
from infra_service.lib.database.retries import retrying

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from apikeys.actors import Actor
    from apikeys.bindings import Binding
    from apikeys.federation.conditions import Condition, Verdict
    from apikeys.networks import Networks
    from apikeys.querysets import TrustPolicyQuerySet


@retrying
@transaction.atomic
def create_trust_policy(
    *,
    owner_id: uuid.UUID,
    issuer_id: str,
    name: str,
    conditions: Sequence[Condition],
    scopes: Iterable[str],
    actor: Actor,
    expires_at: dt.datetime | Default | None = Default.EXPIRY,
    binding: Binding | None = None,
    allowed_networks: Networks | None = None,
    max_token_seconds: int | None = None,
) -> TrustPolicy:
    """Create a policy with tokens that belong to the owner.

    The binding, expiry and networks default to those of the actor.

    Raises:
        GrantExceeded: the policy would exceed the actor's grant or expiry.
        TrustPolicyTooWide: its conditions would trust too many pipelines.
        IssuerUnusable: the issuer is unknown or disabled.
        SecretRetired: the actor's secret was replaced.
        ExpiryPast: the expiry is in the past.
    """
    refuse_retired(actor)
    grant = actor.grant.delegated(scopes, binding, expires_at, allowed_networks)
    if actor.caller is not None:
        descent.lock_credentials(actor.caller.api_key_id, actor.caller.token_id)
    issuer = _lock_issuer(issuer_id)
    lifetime = {} if max_token_seconds is None else {"max_token_seconds": max_token_seconds}
    policy = TrustPolicy(
        owner_id=owner_id,
        issuer=issuer,
        name=name,
        conditions=list(conditions),
        created_by_id=actor.user_id,
        **grant.columns(),
        **lifetime,
        **creator_columns(actor),
    )
    refuse_expired(policy)
    _refuse_too_wide(policy)
    audit.authorize_and_record(actor, "trust_policy.create", policy.pk, **described(policy))
    policy.save(force_insert=True)
    return policy


@retrying
@transaction.atomic
def change_trust_policy(
    *, policies: TrustPolicyQuerySet, policy_id: str, changes: Mapping[str, Any], actor: Actor
) -> None:
    """Change a policy in the queryset, except for its issuer.

    Raises:
        TrustPolicyNotFound: the queryset does not contain the policy.
        TrustPolicyDisabled: the policy is disabled permanently.
        GrantExceeded: the policy would exceed the grant of the actor or of its creator.
        TrustPolicyTooWide: its conditions would trust too many pipelines.
        FieldFixed: the issuer cannot change.
        SecretRetired: the actor's secret was replaced.
        ExpiryPast: the expiry is in the past.
    """
    refuse_retired(actor)
    policy = policies.filter(pk=policy_id).first()
    if policy is None:
        raise TrustPolicyNotFound
    # The same lock order as in a revocation: the parent, then the policy.
    descent.lock_credentials(policy.maker_id, policy.maker_token_id)
    _lock_issuer(policy.issuer_id)
    policy = policies.select_for_update(no_key=True, of=("self",)).get(pk=policy_id)
    if policy.disabled_at is not None:
        raise TrustPolicyDisabled
    if changes.get("issuer_id", policy.issuer_id) != policy.issuer_id:
        raise FieldFixed("issuer_id")
    held, before = policy.grant, described(policy)
    wanted = changed_grant(policy, changes, actor)
    values = {**_plain(policy, changes), **wanted.columns()}
    for column, value in values.items():
        setattr(policy, column, value)
    changed = differences(before, described(policy))
    if not changed:
        return
    if not wanted.is_within(held) or changed.keys() & {"conditions", "max_token_seconds"}:
        actor.grant.check(wanted)
        descent.check_parent(policy, held, wanted)
    if "expires_at" in changed:
        refuse_expired(policy)
    _refuse_too_wide(policy)
    audit.authorize_and_record(actor, "trust_policy.update", policy.pk, **changed)
    TrustPolicy.objects.filter(pk=policy.pk).change(**values)


@retrying
@transaction.atomic
def disable_trust_policy(*, policy: TrustPolicy, actor: Actor) -> None:
    """Disable a policy permanently, which invalidates all its tokens. Idempotent.

    Raises:
        SecretRetired: the actor's secret was replaced.
    """
    refuse_retired(actor)
    enabled = TrustPolicy.objects.filter(pk=policy.pk, disabled_at=None)
    disabled = {"disabled_at": Now()}
    change_and_record(policy.pk, enabled, disabled, actor=actor, action="trust_policy.disable")


def _lock_issuer(issuer_id: str) -> Issuer:
    """Return the issuer, locked against changes until the transaction ends."""
    issuers = Issuer.objects.select_for_update(no_key=True)
    issuer: Issuer | None = issuers.filter(pk=issuer_id, disabled_at=None).first()
    if issuer is None:
        raise IssuerUnusable
    return issuer


def _plain(policy: TrustPolicy, changes: Mapping[str, Any]) -> dict[str, Any]:
    names = ("name", "conditions", "max_token_seconds")
    return {name: changes.get(name, getattr(policy, name)) for name in names}


def _refuse_too_wide(policy: TrustPolicy) -> None:
    faults = kinds.policy_faults(
        policy.issuer.kind, policy.conditions, writes=kinds.writes(policy.scopes)
    )
    if faults:
        raise TrustPolicyTooWide(faults)


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a trial exchange."""

    would_be_given: bool
    conditions: list[Verdict]
    #: Reasons for a refusal other than unmet conditions.
    refusals: list[str]


def try_trust_policy(
    *, policy: TrustPolicy, claims: Mapping[str, Any] | None = None, token: str | None = None
) -> Trial:
    """Return whether an exchange of these claims or this token would succeed; issue no token.

    The function may fetch the issuer's keys, so call it outside of a transaction.

    Raises:
        IssuerBusy: too many requests wait for the issuer's keys.
    """
    if token is not None:
        try:
            claims = verify(token, policy.issuer).claims
        except AssertionRefused as refused:
            return Trial(would_be_given=False, conditions=[], refusals=[f"{refused.because}."])
    claims = claims or {}
    verdicts = check(policy.conditions, claims)
    refusals = [f"{because}." for _reason, because in endings(policy)]
    refusals += kinds.refusals(policy.issuer.kind, claims, writes=kinds.writes(policy.scopes))
    return Trial(are_met(verdicts) and not refusals, verdicts, refusals)


def endings(policy: TrustPolicy) -> Iterator[tuple[str, str]]:
    """Yield each reason why the policy is unusable, as a code and a human-readable text."""
    if policy.disabled_at is not None:
        yield "policy_disabled", "The policy is disabled"
    if policy.has_expired:
        yield "policy_expired", "The policy has expired"
    if policy.issuer.disabled_at is not None:
        yield "issuer_disabled", "The issuer is disabled"
    if not policy.owner.is_active:
        yield "owner_inactive", "The policy's owner is not active"
    elif (days := settings.OWNER_IDLE_DAYS) and (
        User.objects.idle(days, timezone.now()).filter(pk=policy.owner_id).exists()
    ):
        yield "owner_idle", "The policy's owner has not signed on recently"
