"""Register, change and disable the issuers of trusted signatures."""

from __future__ import annotations

import hashlib
import json
import ssl
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.utils import timezone

from apikeys import audit
from apikeys.actions.audited_changes import change_and_record, differences
from apikeys.actions.rules import refuse_retired
from apikeys.bindings import EVERYWHERE
from apikeys.errors import BindingInsufficient
from apikeys.federation.errors import (
    FieldFixed,
    InvalidIssuer,
    IssuerDisabled,
    IssuerNotFound,
    IssuerShared,
)
from apikeys.federation.fetching import MAX_BYTES
from apikeys.federation.key_formats import KeySetError, undecodable, usable_keys
from apikeys.federation.kinds import address_faults, is_known_platform, issuer_faults
from apikeys.federation.platforms import PLATFORMS
from apikeys.models import Issuer
from infra_service.lib.database.retries import retrying

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from apikeys.actors import Actor

#: Fields that determine the source of the keys. A change to one of them discards the stored keys.
_OF_KEYS: Final = frozenset({"url", "jwks_url", "inline_keys", "ca"})
_NO_KEYS: Final = {
    "key_set": None, "key_set_fetched_at": None, "key_set_asked_at": None,
    "key_set_settled_at": None, "failures": 0,
}  # fmt: skip
#: Members of private keys, and ``k`` of symmetric keys (RFC 7518 §6).
_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
#: Long fields. The audit log contains only their digests.
_LONG: Final = ("inline_keys", "ca")
_SHORT: Final = (
    "kind", "name", "url", "audience", "jwks_url", "algorithms", "max_assertion_seconds",
)  # fmt: skip


@retrying
@transaction.atomic
def create_issuer(*, fields: Mapping[str, Any], actor: Actor) -> Issuer:
    """Register an issuer. The URL and the algorithms default to those of the platform.

    Raises:
        InvalidIssuer: the fields are invalid for an issuer of this kind.
        BindingInsufficient: the actor has a binding, but an issuer serves all users.
        SecretRetired: the actor's secret was replaced.
    """
    _check_actor(actor)
    platform = PLATFORMS[fields["kind"]]
    defaults = {"url": platform.url, "algorithms": list(platform.algorithms)}
    issuer = Issuer(**{**defaults, **fields})
    _refuse_unsound(issuer, actor)
    audit.authorize_and_record(actor, "issuer.create", issuer.pk, **_described(issuer))
    issuer.save(force_insert=True)
    return issuer


@retrying
@transaction.atomic
def change_issuer(*, issuer_id: str, changes: Mapping[str, Any], actor: Actor) -> None:
    """Change an issuer, except for its kind.

    Raises:
        IssuerNotFound: the issuer does not exist.
        IssuerDisabled: the issuer is disabled permanently.
        IssuerShared: a policy of the issuer exceeds the actor's grant, or has another owner.
        InvalidIssuer, FieldFixed: the new fields are not allowed.
        BindingInsufficient, SecretRetired: see ``create_issuer``.
    """
    _check_actor(actor)
    issuer = _locked(issuer_id)
    if issuer.disabled_at is not None:
        raise IssuerDisabled
    if changes.get("kind", issuer.kind) != issuer.kind:
        raise FieldFixed("kind")
    _check_policies(issuer, actor)
    before = _described(issuer)
    for name, value in changes.items():
        setattr(issuer, name, value)
    changed = differences(before, _described(issuer))
    if not changed:
        return
    _refuse_unsound(issuer, actor)
    forgotten = {} if _OF_KEYS.isdisjoint(changed) else _NO_KEYS
    audit.authorize_and_record(actor, "issuer.update", issuer.pk, **changed)
    values = {name: getattr(issuer, name) for name in changed}
    Issuer.objects.filter(pk=issuer.pk).change(**values, **forgotten)


@retrying
@transaction.atomic
def disable_issuer(*, issuer_id: str, actor: Actor) -> None:
    """Disable an issuer permanently, which invalidates all tokens of its pipelines. Idempotent.

    Raises:
        IssuerNotFound, IssuerShared, BindingInsufficient, SecretRetired: see ``change_issuer``.
    """
    _check_actor(actor)
    issuer = _locked(issuer_id)
    _check_policies(issuer, actor)
    working = Issuer.objects.filter(pk=issuer.pk, disabled_at=None)
    disabled = {"disabled_at": timezone.now()}
    change_and_record(issuer.pk, working, disabled, actor=actor, action="issuer.disable")


def _check_actor(actor: Actor) -> None:
    refuse_retired(actor)
    if actor.grant.binding != EVERYWHERE:
        raise BindingInsufficient


def _locked(issuer_id: str) -> Issuer:
    issuer: Issuer | None = (
        Issuer.objects.select_for_update(no_key=True).filter(pk=issuer_id).first()
    )
    if issuer is None:
        raise IssuerNotFound
    return issuer


def _check_policies(issuer: Issuer, actor: Actor) -> None:
    """Refuse a caller that lacks the grant of any policy of the issuer.

    A caller that controls the issuer's keys could sign tokens that meet the policies. The error
    does not disclose the policies.
    """
    if actor.caller is None:
        return
    for policy in issuer.policies.filter(disabled_at=None):
        if policy.owner_id != actor.user_id or not policy.grant.is_within(actor.grant):
            raise IssuerShared


def _refuse_unsound(issuer: Issuer, actor: Actor) -> None:
    for field, fault in _faults(issuer):
        raise InvalidIssuer(field, fault)
    if actor.caller is None or not is_known_platform(issuer.url):
        return
    for name in ("inline_keys", "jwks_url", "ca"):
        # Otherwise, users could mistake the issuer for the platform itself.
        if getattr(issuer, name):
            raise InvalidIssuer(
                name,
                f"The keys of {issuer.url} come from its discovery document and cannot be "
                "overridden.",
            )


def _faults(issuer: Issuer) -> Iterator[tuple[str, str]]:
    has_keys = issuer.inline_keys is not None
    for fault in issuer_faults(issuer.kind, issuer.url, has_keys=has_keys):
        yield "url", fault
    if has_keys:
        yield from (("inline_keys", fault) for fault in _key_faults(issuer.inline_keys))
    if issuer.jwks_url:
        yield from (("jwks_url", fault) for fault in address_faults(issuer.jwks_url))
        if has_keys:
            yield "jwks_url", "Specify jwks_url or inline_keys, not both."
    if issuer.ca and not _is_certificates(issuer.ca):
        yield "ca", "Enter certificates in PEM format."


def _key_faults(found: Any) -> Iterator[str]:
    if len(json.dumps(found)) > MAX_BYTES:  # a page of the list contains up to 100 key sets
        yield f"Larger than {MAX_BYTES // 1024} KB."
        return
    try:
        key_set = usable_keys(found)
    except KeySetError as error:
        yield f"Not a JWK Set of public keys: {error}."
        return
    kid = undecodable(key_set)
    if kid is not None:
        yield f"The key {kid[:100]!r} is malformed, or of a type that the service does not support."
    if any(isinstance(key, dict) and not _PRIVATE.isdisjoint(key) for key in found["keys"]):
        yield "The key contains private members. Replace the key pair; enter only the public key."


def _is_certificates(text: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError, TypeError):
        return False
    return True


def _described(issuer: Issuer) -> dict[str, Any]:
    """Return the description of an issuer for the audit log."""
    digests = {
        name: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
        if (value := getattr(issuer, name))
        else None
        for name in _LONG
    }
    return {**{name: getattr(issuer, name) for name in _SHORT}, **digests}
