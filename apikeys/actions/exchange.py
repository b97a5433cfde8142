"""Exchange of an assertion, the signed token of a platform, for an access token."""

from __future__ import annotations

import dataclasses
import datetime as dt
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import IntegrityError, transaction
from django.utils import timezone

from apikeys import audit, tokens
from apikeys.actions.access_tokens import MINTED_LIFETIME
from apikeys.actions.audited_changes import described
from apikeys.actions.trust_policies import endings
from apikeys.federation import conditions, kinds
from apikeys.federation.assertions import verify
from apikeys.federation.exchange_errors import AssertionRefused, ExchangeRefused, NarrowingRefused
from apikeys.models import AccessToken, TrustPolicy, UsedAssertion
from apikeys.scopes import with_included
from apikeys.tokens import TokenKind
from infra_service.lib.api.limits import Limit, limiter
from infra_service.lib.database.compiled import insert
from infra_service.lib.database.retries import retrying

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from apikeys.actors import Actor
    from apikeys.federation.assertions import Assertion

log = structlog.get_logger("apikeys.federation")

#: The maximum number of refusals per policy and minute in the audit log, because anybody with the
#: id of the policy can cause refusals. The log contains all refusals.
RECORDED_A_MINUTE: Final = 60
#: The maximum number of characters of a claim in the audit log. Issuers choose the length.
_MOST_TEXT: Final = 500


@dataclass(frozen=True, slots=True)
class Proof:
    """Proof that a policy trusts the assertion."""

    policy: TrustPolicy
    assertion: Assertion


@contextmanager
def recording_refusals(policy_id: str, actor: Actor) -> Iterator[None]:
    """Log a refusal that the block raises, and record it in the audit log if the policy exists."""
    try:
        yield
    except ExchangeRefused as refused:
        details = {"reason": refused.reason, "because": refused.because, **refused.details}
        details = _storable(details)
        log.info("assertion_refused", trust_policy_id=policy_id, **details)
        if refused.reason != "policy_unknown" and not limiter().hit(
            Limit("refusal", policy_id, RECORDED_A_MINUTE)
        ):
            audit.authorize_and_record(actor, "assertion.refuse", policy_id, **details)
        raise


def prove(*, policy_id: str, token: str) -> Proof:
    """Return the proof that a policy trusts a platform's token.

    The function may fetch the issuer's keys, so call it outside of a transaction.

    Raises:
        AssertionRefused: the policy does not exist, is unusable, or does not trust the token.
        IssuerBusy: too many requests wait for the issuer's keys.
    """
    policy = _working_policy(policy_id)
    assertion = verify(token, policy.issuer)
    claims, kind = assertion.claims, policy.issuer.kind
    run_of_token = _run(kind, claims)
    verdicts = conditions.check(policy.conditions, claims)
    if not conditions.are_met(verdicts):
        unmet = [
            {"claim": verdict.claim, "wanted": verdict.wanted, "had": verdict.had}
            for verdict in verdicts
            if not verdict.met
        ]
        because = "The claims do not meet the conditions"
        raise AssertionRefused("conditions_unmet", because, unmet=unmet, run=run_of_token)
    for refusal in kinds.refusals(kind, claims, writes=kinds.writes(policy.scopes)):
        raise AssertionRefused("event_untrusted", refusal, run=run_of_token)
    return Proof(policy, assertion)


@retrying
def exchange_assertion(
    *, proof: Proof, scopes: Collection[str] | None, ttl: dt.timedelta | None, actor: Actor
) -> tuple[AccessToken, str]:
    """Issue a token for a proof. Return the token and its secret, which is not stored.

    The token has the policy's full grant, unless ``scopes`` restricts it. The token is valid for
    ``ttl``, but no longer than the policy. The default is an hour, or the maximum lifetime that the
    policy allows if it is shorter.

    Raises:
        AssertionRefused: the assertion was used before, or the policy has changed since the proof.
        NarrowingRefused: the request exceeds the policy's grant.
    """
    policy, now = proof.policy, timezone.now()
    wanted = frozenset(policy.scopes if scopes is None else scopes)
    if not wanted <= with_included(policy.scopes):
        raise NarrowingRefused("invalid_scope", "The policy does not grant these scopes.")
    expires_at = now + _lifetime(policy, ttl)
    if policy.expires_at is not None:
        expires_at = min(expires_at, policy.expires_at)
    if expires_at <= now:
        raise AssertionRefused("policy_expired", "The policy has expired")
    secret = tokens.generate(TokenKind.SERVICE)
    token = AccessToken(
        kind=TokenKind.SERVICE.name,
        name=policy.name,
        digest=tokens.digest(secret),
        created_by_id=policy.owner_id,
        trust_policy=policy,
        run=_run(policy.issuer.kind, proof.assertion.claims),
        created_at=now,
        **policy.grant.delegated(wanted, None, expires_at).columns(),
    )
    owner = policy.owner
    by = dataclasses.replace(actor, name=owner.get_username(), user_id=owner.pk, token_id=token.pk)
    with transaction.atomic():
        _use(proof.assertion)
        insert(token)
        origin = {"trust_policy_id": policy.pk, "run": token.run}
        audit.authorize_and_record(
            by, "access_token.exchange", token.pk, **described(token), **origin
        )
        unchanged = TrustPolicy.objects.as_seen(policy).filter(
            disabled_at=None, issuer__revision=policy.issuer.revision, issuer__disabled_at=None
        )
        if not unchanged.update(last_used_at=now, last_run=token.run):
            raise AssertionRefused("policy_changed", "The policy or its issuer was changed")
    return token, secret


def _working_policy(policy_id: str) -> TrustPolicy:
    policy: TrustPolicy | None = (
        TrustPolicy.objects.select_related("issuer", "owner").filter(pk=policy_id).first()
    )
    if policy is None:
        raise AssertionRefused("policy_unknown", "The policy does not exist")
    for reason, because in endings(policy):
        raise AssertionRefused(reason, because)
    return policy


def _lifetime(policy: TrustPolicy, ttl: dt.timedelta | None) -> dt.timedelta:
    longest = dt.timedelta(seconds=policy.max_token_seconds)
    if ttl is None:
        return min(MINTED_LIFETIME, longest)
    if ttl > longest:
        raise NarrowingRefused(
            "invalid_request", f"ttl: the policy allows at most {policy.max_token_seconds} seconds."
        )
    return ttl


def _use(assertion: Assertion) -> None:
    """Mark the assertion as used, in the transaction that mints the token.

    Raises:
        AssertionRefused: the assertion was used before.
    """
    try:
        insert(UsedAssertion(digest=assertion.digest, expires_at=assertion.expires_at))
    except IntegrityError as error:
        raise AssertionRefused("assertion_used", "The assertion was exchanged before") from error


def _run(kind: str, claims: dict[str, Any]) -> dict[str, Any]:
    """Return the claims that are stored with the token."""
    names = {name: claims.get(name) for name in ("jti", "sub")}
    run: dict[str, Any] = _storable({**names, **kinds.described(kind, claims)})
    return run


def _storable(value: Any, depth: int = 5) -> Any:
    """Return the value in a form that every database accepts, limited in length and depth."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, (dict, list)) and depth:
        if isinstance(value, list):
            return [_storable(item, depth - 1) for item in value]
        return {_storable(name): _storable(item, depth - 1) for name, item in value.items()}
    text = value if isinstance(value, str) else str(value)
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")[:_MOST_TEXT]
