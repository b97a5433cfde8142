"""POST /v1/trust-policies/{id}:test."""

from __future__ import annotations

from typing import Any

import pytest

from apikeys import actions
from apikeys.actors import Actor
from apikeys.models import AccessToken, TrustPolicy, UsedAssertion
from tests.apikeys.conftest import KeyOwner, violations
from tests.apikeys.exchanging import Pipeline
from tests.apikeys.federation.conftest import PolicyOf

CLAIMS = {
    "repository_id": "651234",
    "repository_owner_id": "9919",
    "environment": "production",
    "event_name": "push",
}


def attempt(client: KeyOwner, policy: TrustPolicy, **body: Any) -> Any:
    return client.send("POST", f"/v1/trust-policies/{policy.pk}:test", body)


def test_matching_claims_pass_the_test(writer: KeyOwner, policy_of: PolicyOf) -> None:
    policy = policy_of(writer)

    response = attempt(writer, policy, claims=CLAIMS)

    assert response.status_code == 200
    assert response.json() == {
        "would_be_given": True,
        "conditions": [
            {"claim": name, "wanted": {"equals": CLAIMS[name]}, "had": CLAIMS[name], "met": True}
            for name in ("repository_id", "repository_owner_id", "environment")
        ],
        "refusals": [],
    }
    assert not AccessToken.objects.exists()
    assert not UsedAssertion.objects.exists()
    policy.refresh_from_db()
    assert policy.last_used_at is None


@pytest.mark.parametrize(
    ("claims", "met", "refusals"),
    [
        ({"environment": "staging"}, [True, True, False], 0),
        ({"repository_id": None}, [False, True, True], 0),
        ({"event_name": "pull_request_target"}, [True, True, True], 1),
    ],
)
def test_mismatching_claims_fail_the_test(
    writer: KeyOwner, policy_of: PolicyOf, claims: Any, met: list[bool], refusals: int
) -> None:
    answer = attempt(writer, policy_of(writer), claims={**CLAIMS, **claims}).json()

    assert answer["would_be_given"] is False
    assert [verdict["met"] for verdict in answer["conditions"]] == met
    assert len(answer["refusals"]) == refusals


def test_expired_policy_is_refused(writer: KeyOwner, policy_of: PolicyOf) -> None:
    policy = policy_of(writer)
    actions.disable_trust_policy(policy=policy, actor=Actor(name="test"))
    actions.disable_issuer(issuer_id=policy.issuer_id, actor=Actor(name="test"))

    answer = attempt(writer, policy, claims=CLAIMS).json()

    assert answer["would_be_given"] is False
    assert answer["refusals"] == ["The policy is disabled.", "The issuer is disabled."]


def test_token_of_the_platform_is_verified(writer: KeyOwner, pipeline: Pipeline) -> None:
    token = pipeline.token()

    answer = attempt(writer, pipeline.policy, token=token).json()

    assert answer["would_be_given"] is True
    assert all(verdict["met"] for verdict in answer["conditions"])
    assert pipeline.exchange(token).status_code == 200, "it was not used"

    forged = f"{token.rpartition('.')[0]}.AAAA"
    answer = attempt(writer, pipeline.policy, token=forged).json()
    assert answer == {
        "would_be_given": False,
        "conditions": [],
        "refusals": ["Signature verification failed."],
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "claims"),
        ({"claims": CLAIMS, "token": "x"}, "token"),
        ({"claims": []}, "claims"),
        ({"claims": None}, "claims"),
        ({"claim": {}}, "claim"),
    ],
)
def test_body_of_another_form_is_rejected(
    writer: KeyOwner, policy_of: PolicyOf, body: Any, field: str
) -> None:
    response = attempt(writer, policy_of(writer), **body)

    assert response.status_code == 400
    assert field in [name for name, _reason in violations(response)]
