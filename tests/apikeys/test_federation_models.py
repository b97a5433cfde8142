"""Database constraints of issuers, trust policies and used assertions."""

import datetime as dt
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from apikeys.models import AccessToken, Issuer, TrustPolicy, UsedAssertion, User
from apikeys.querysets import AccessTokenStatus

GITHUB: dict[str, Any] = {
    "kind": "GITHUB",
    "url": "https://token.actions.githubusercontent.com",
    "audience": "https://infra.example",
}


def make_issuer(**fields: Any) -> Issuer:
    return Issuer.objects.create(**{**GITHUB, **fields})


def make_policy(owner: User, issuer: Issuer | None = None, **fields: Any) -> TrustPolicy:
    values = {
        "name": "deploy",
        "scopes": ["state:read"],
        "conditions": [{"claim": "repository_id", "equals": "1"}],
        "owner": owner,
        "issuer": issuer or make_issuer(),
    }
    return TrustPolicy.objects.create(**{**values, **fields})


def make_token(policy: TrustPolicy, **fields: Any) -> AccessToken:
    values = {
        "name": "x",
        "kind": "SERVICE",
        "scopes": ["state:read"],
        "digest": b"0" * 32,
        "created_by": policy.owner,
        "trust_policy": policy,
        "expires_at": timezone.now() + dt.timedelta(hours=1),
    }
    return AccessToken.objects.create(**{**values, **fields})


ISSUERS: dict[str, dict[str, Any]] = {
    "issuer_id_form": {"id": "fed-1"},
    "issuer_kind_known": {"kind": "OTHER"},
    "issuer_url_is_https": {"url": "http://issuer.example"},
    "issuer_jwks_url_is_https": {"jwks_url": "http://issuer.example/keys"},
    "issuer_audience_present": {"audience": ""},
    "issuer_keys_from_one_place": {"jwks_url": "https://x.example", "inline_keys": {"keys": []}},
    "issuer_assertions_end": {"max_assertion_seconds": 24 * 60 * 60 + 1},
}
LONG_AGO = timezone.now() - dt.timedelta(days=2)
EARLY = {"created_at": timezone.now(), "expires_at": timezone.now() - dt.timedelta(days=1)}
ID = "00000000-0000-4000-8000-000000000001"
POLICIES: dict[str, dict[str, Any]] = {
    "trustpolicy_id_form": {"id": "iss-1"},
    "trustpolicy_name_present": {"name": ""},
    "trustpolicy_scopes_present": {"scopes": []},
    "trustpolicy_conditions_present": {"conditions": []},
    "trustpolicy_expires_after_creation": EARLY,
    "trustpolicy_bound_one_way": {"bound_cluster_id": ID, "bound_component_ids": [ID]},
    "trustpolicy_networks_so_many": {"allowed_networks": []},
    "trustpolicy_bound_to_so_many": {"bound_component_ids": []},
    "trustpolicy_bound_to_applications": {"bound_application_ids": [ID]},
    "trustpolicy_tokens_end": {"max_token_seconds": 12 * 60 * 60 + 1},
}
TOKENS: dict[str, dict[str, Any]] = {
    "no end": {"expires_at": None},
    "another kind": {"kind": "PERSONAL"},
}


@pytest.mark.parametrize("name", ISSUERS)
def test_database_enforces_constraints_of_issuers(db: None, name: str) -> None:
    with transaction.atomic(), pytest.raises(IntegrityError, match=name):
        make_issuer(**ISSUERS[name])


@pytest.mark.parametrize("name", POLICIES)
def test_database_enforces_constraints_of_policies(operator: User, name: str) -> None:
    issuer = make_issuer()

    with transaction.atomic(), pytest.raises(IntegrityError, match=name):
        make_policy(operator, issuer, **POLICIES[name])


@pytest.mark.parametrize("name", TOKENS)
def test_exchanged_token_must_be_a_service_token_with_expiry(operator: User, name: str) -> None:
    policy = make_policy(operator)

    with transaction.atomic(), pytest.raises(IntegrityError, match="accesstoken_exchanged_expires"):
        make_token(policy, **TOKENS[name])


def test_every_constraint_has_its_test() -> None:
    assert {c.name for c in Issuer._meta.constraints} == set(ISSUERS)
    assert {c.name for c in TrustPolicy._meta.constraints} == set(POLICIES)


def test_a_name_that_is_no_address_needs_its_keys_here(db: None) -> None:
    issuer = make_issuer(kind="KUBERNETES", url="kubernetes/prod", inline_keys={"keys": []})

    with transaction.atomic(), pytest.raises(IntegrityError, match="issuer_url_is_https"):
        make_issuer(kind="KUBERNETES", url="kubernetes/prod")
    assert str(issuer) == f"kubernetes/prod ({issuer.pk})"


def test_an_assertion_is_used_once(db: None) -> None:
    used = UsedAssertion(digest=b"1" * 32, expires_at=timezone.now())
    used.save(force_insert=True)

    with transaction.atomic(), pytest.raises(IntegrityError, match="digest"):
        UsedAssertion(digest=b"1" * 32, expires_at=timezone.now()).save(force_insert=True)
    assert str(used).startswith("an assertion until ")


def test_identifiers_have_the_documented_form(operator: User) -> None:
    policy = make_policy(operator)

    assert policy.pk.startswith("fed-")
    assert policy.issuer_id.startswith("iss-")
    assert str(policy) == f"deploy ({policy.pk})"


ENDS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "its policy is disabled": (TrustPolicy, {"disabled_at": timezone.now()}, "REVOKED"),
    "its issuer is disabled": (Issuer, {"disabled_at": timezone.now()}, "REVOKED"),
    "its policy has ended": (
        TrustPolicy,
        {"created_at": LONG_AGO, "expires_at": EARLY["expires_at"]},
        "EXPIRED",
    ),
}  # fmt: skip


@pytest.mark.both
@pytest.mark.parametrize("name", ENDS)
def test_a_token_ends_with_its_policy(operator: User, name: str) -> None:
    token = make_token(make_policy(operator))
    tokens = AccessToken.objects
    assert list(tokens.active()) == [token]
    assert not tokens.ended_with_origin().exists()

    model, change, status = ENDS[name]
    model.objects.update(**change)

    assert not tokens.active().exists()
    assert list(tokens.ended_with_origin()) == [token]
    assert tokens.with_status().get().status == AccessTokenStatus[status]


def test_exchanged_token_is_not_counted_as_issued(operator: User) -> None:
    policy = make_policy(operator, expires_at=timezone.now() + dt.timedelta(minutes=1))
    token = make_token(policy)

    assert not AccessToken.objects.issued().exists()
    assert token.expiry == policy.expires_at


def test_a_change_is_noticed(operator: User) -> None:
    policy = make_policy(operator)
    # SQLite's clock has millisecond resolution, so the changes can share a timestamp.
    before = timezone.now() - dt.timedelta(minutes=1)
    for model in (TrustPolicy, Issuer):
        model.objects.update(updated_at=before)
    assert TrustPolicy.objects.disable(policy.pk) == 1
    assert TrustPolicy.objects.disable(policy.pk) == 0
    assert Issuer.objects.change(name="x") == 1

    assert not TrustPolicy.objects.as_seen(policy).exists()
    changed = TrustPolicy.objects.select_related("issuer").get()
    assert (changed.revision, changed.issuer.revision) == (1, 1)
    assert changed.updated_at > before
    assert changed.issuer.updated_at > before
