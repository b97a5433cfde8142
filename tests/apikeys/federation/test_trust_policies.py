"""/v1/trust-policies, but for :test."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apikeys import actions
from apikeys.actors import Actor
from apikeys.bindings import Binding
from apikeys.models import AccessToken, AuditEvent, Issuer, TrustPolicy
from tests.apikeys.conftest import KeyClient, KeyOwner, KeyWith, violations, wire
from tests.apikeys.federation.conftest import GITHUB, GITHUB_IDS, WRITER, PolicyOf
from tests.conftest import error_reason

PATH = "/v1/trust-policies"


def create(client: KeyClient, issuer: Issuer, **fields: Any) -> Any:
    given = {"name": "deploy", "issuer_id": issuer.pk, "conditions": GITHUB, **fields}
    return client.send("POST", PATH, {"trust_policy": {"scopes": ["state:write"], **given}})


def change(client: KeyOwner, policy: TrustPolicy, **fields: Any) -> Any:
    return client.send("PATCH", f"{PATH}/{policy.pk}", {"trust_policy": fields})


def test_policy_is_returned(writer: KeyOwner, issuer: Issuer) -> None:
    response = create(writer, issuer)

    assert response.status_code == 201
    policy = TrustPolicy.objects.get()
    assert response.json()["trust_policy"] == {
        "id": policy.pk,
        "name": "deploy",
        "issuer_id": issuer.pk,
        "conditions": GITHUB,
        "scopes": ["state:write"],
        "binding": None,
        "allowed_networks": None,
        "max_token_seconds": 3600,
        "expires_at": None,
        "owner": {"id": str(policy.owner_id), "display_name": "The operator", "email": ""},
        "made_by": writer.key_id,
        "last_used_at": None,
        "last_run": None,
        "disabled_at": None,
        "created_at": wire(policy.created_at),
        "updated_at": wire(policy.updated_at),
        "warnings": [],
    }
    assert (policy.maker_id, policy.created_by_id) == (writer.key_id, policy.owner_id)
    event = AuditEvent.objects.get(action="trust_policy.create")
    assert (event.resource_id, event.details["conditions"]) == (policy.pk, GITHUB)
    assert event.token_id == writer.key_id


def test_a_list_in_pages_and_filtered(
    writer: KeyOwner, issuer: Issuer, policy_of: PolicyOf
) -> None:
    for name in ("a", "b"):
        policy_of(writer, name=name)

    first = writer.get(PATH, {"page_size": 1}).json()
    second = writer.get(PATH, {"page_token": first["next_page_token"]}).json()
    named = writer.get(PATH, {"filter": "field['name'] = 'b'"}).json()["trust_policies"]
    by_issuer = {"filter": f"field['issuer_id'] = '{issuer.pk}'"}

    assert [one["name"] for one in first["trust_policies"]] == ["a"]
    assert [one["name"] for one in second["trust_policies"]] == ["b"]
    assert named == second["trust_policies"]
    assert named == [writer.get(f"{PATH}/{named[0]['id']}").json()["trust_policy"]]
    assert len(writer.get(PATH, by_issuer).json()["trust_policies"]) == 2


@pytest.mark.parametrize(
    ("conditions", "field"),
    [
        ([], "trust_policy.conditions"),
        ("x", "trust_policy.conditions"),
        ([*GITHUB, {"claim": "ref", "regex": ".*"}], "trust_policy.conditions.3"),
        ([{"claim": "repository_id", "glob": "*"}], "trust_policy.conditions.0.glob"),
        ([{"claim": "aud", "equals": "x"}], "trust_policy.conditions.0.claim"),
    ],
)
def test_invalid_condition_is_rejected(
    writer: KeyOwner, issuer: Issuer, conditions: Any, field: str
) -> None:
    response = create(writer, issuer, conditions=conditions)

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    assert field in [name for name, _reason in violations(response)]


@pytest.mark.parametrize(
    ("conditions", "scopes", "faults"),
    [
        (GITHUB[1:], ["state:read"], 1),
        (GITHUB[2:], ["state:read"], 2),
        ([{"claim": "repository", "equals": "acme/infra"}], ["state:read"], 2),
        (GITHUB_IDS, ["state:write"], 1),
        ([*GITHUB_IDS, {"claim": "ref", "equals": "refs/heads/main"}], ["state:write"], 1),
        (GITHUB_IDS, ["state:read"], 0),
        (GITHUB, ["state:write"], 0),
    ],
)
def test_a_policy_that_trusts_too_many_is_refused(
    writer: KeyOwner, issuer: Issuer, conditions: Any, scopes: list[str], faults: int
) -> None:
    response = create(writer, issuer, conditions=conditions, scopes=scopes)

    if not faults:
        assert response.status_code == 201
        return
    assert (response.status_code, error_reason(response)) == (400, "TRUST_POLICY_TOO_WIDE")
    assert violations(response) == [("conditions", "NOT_PINNED")] * faults
    assert not TrustPolicy.objects.exists()


def test_a_change_is_judged_as_a_new_policy_is(writer: KeyOwner, policy_of: PolicyOf) -> None:
    policy = policy_of(writer, conditions=GITHUB_IDS, scopes=["state:read"])

    for fields in ({"scopes": ["state:write"]}, {"conditions": GITHUB[:1]}):
        assert error_reason(change(writer, policy, **fields)) == "TRUST_POLICY_TOO_WIDE"
    both = change(writer, policy, scopes=["state:write"], conditions=GITHUB, name="other")
    assert both.json()["trust_policy"]["conditions"] == GITHUB
    event = AuditEvent.objects.filter(action="trust_policy.update").latest("id")
    assert set(event.details) == {"name", "scopes", "conditions"}


@pytest.mark.parametrize("issuer_id", ["iss-1", "x", "key-1"])
def test_missing_issuer_is_rejected(writer: KeyOwner, issuer: Issuer, issuer_id: str) -> None:
    response = create(writer, issuer, issuer_id=issuer_id)

    assert (response.status_code, violations(response)) == (400, [("issuer_id", "UNKNOWN_ISSUER")])


def test_disabled_issuer_is_rejected(writer: KeyOwner, issuer: Issuer, policy_of: PolicyOf) -> None:
    policy = policy_of(writer)
    actions.disable_issuer(issuer_id=issuer.pk, actor=Actor(name="test"))

    for response in (create(writer, issuer), change(writer, policy, name="x")):
        assert violations(response) == [("issuer_id", "UNKNOWN_ISSUER")]


def test_an_issuer_is_for_good(writer: KeyOwner, policy_of: PolicyOf) -> None:
    policy = policy_of(writer)

    assert violations(change(writer, policy, issuer_id="iss-2")) == [("issuer_id", "FIXED")]


CLUSTER = Binding(cluster_id=uuid.UUID(int=1))


@pytest.mark.parametrize(
    "fields",
    [
        {"scopes": ["state:admin"]},
        {"scopes": ["state:read", "audit:read"]},
        {"binding": None},
        {"expires_at": None},
        {"expires_at": "2099-01-01T00:00:00Z"},
    ],
)
def test_policy_cannot_exceed_the_grant_of_its_creator(
    key_with: KeyWith, issuer: Issuer, policy_of: PolicyOf, fields: dict[str, Any]
) -> None:
    holder = key_with(*WRITER, binding=CLUSTER, lifetime=dt.timedelta(days=1))

    response = create(holder, issuer, **fields)
    assert (response.status_code, error_reason(response)) == (403, "GRANT_EXCEEDED")

    # By default a policy has the binding and the expiry of its maker.
    policy = policy_of(holder)
    assert (policy.binding, policy.expires_at) == (CLUSTER, holder.key.expires_at)
    response = change(holder, policy, **fields)
    assert (response.status_code, error_reason(response)) == (403, "GRANT_EXCEEDED")


@pytest.mark.parametrize(
    "fields",
    [
        {"conditions": [*GITHUB_IDS, {"claim": "environment", "equals": "staging"}]},
        {"max_token_seconds": 43_200},
    ],
)
def test_caller_with_fewer_permissions_cannot_redirect_a_policy(
    writer: KeyOwner, key_with: KeyWith, policy_of: PolicyOf, fields: dict[str, Any]
) -> None:
    policy = policy_of(writer)
    less = key_with("federation:write", "state:read")

    response = change(less, policy, **fields)

    assert (response.status_code, error_reason(response)) == (403, "GRANT_EXCEEDED")
    assert change(less, policy, scopes=["state:read"], name="less").status_code == 200
    assert change(less, policy, scopes=["state:write"]).status_code == 403


def test_a_policy_has_no_more_than_the_key_that_made_it(
    writer: KeyOwner, key_with: KeyWith, policy_of: PolicyOf
) -> None:
    maker = key_with("federation:write", "state:read")
    policy = policy_of(maker, scopes=["state:read"])

    response = change(writer, policy, scopes=["state:read", "state:write"])

    assert (response.status_code, error_reason(response)) == (403, "GRANT_EXCEEDED")


def _minted(client: KeyOwner, *scopes: str) -> KeyClient:
    fields = {"name": "t", "scopes": scopes}
    answer = client.send("POST", "/v1/access-tokens", {"access_token": fields})
    return KeyClient(answer.json()["secret"])


def test_policy_is_disabled_with_the_credential_that_made_it(
    writer: KeyOwner, key_with: KeyWith, issuer: Issuer, policy_of: PolicyOf
) -> None:
    by_key = policy_of(writer)
    token = _minted(writer, *WRITER)
    made: Any = token
    by_token = policy_of(made, name="by token")
    assert by_token.maker_id == writer.key_id
    token_id = by_token.maker_token_id
    other = key_with("apikey:write")

    other.send("POST", f"/v1/access-tokens/{token_id}:revoke")
    by_token.refresh_from_db()
    by_key.refresh_from_db()
    assert by_token.disabled_at is not None
    assert by_key.disabled_at is None

    other.send("POST", f"{writer.path}:revoke")
    by_key.refresh_from_db()
    assert by_key.disabled_at is not None
    events = AuditEvent.objects.filter(action="trust_policy.disable").order_by("id")
    assert [event.details for event in events] == [
        {"ancestor": token_id},
        {"ancestor": writer.key_id},
    ]


def test_policy_is_disabled_with_the_ancestor_of_its_maker(
    key_with: KeyWith, issuer: Issuer, policy_of: PolicyOf
) -> None:
    first = key_with(*WRITER)
    fields = {"name": "second", "scopes": list(WRITER)}
    answer = first.send("POST", "/v1/api-keys", {"api_key": fields}).json()
    second: Any = KeyClient(answer["secret"])
    policy, another = policy_of(second), policy_of(key_with(*WRITER), name="another")

    first.send("POST", f"{first.path}:revoke")

    policy.refresh_from_db()
    another.refresh_from_db()
    assert (policy.disabled_at is None, another.disabled_at is None) == (False, True)


def test_narrowed_key_narrows_its_policies(
    writer: KeyOwner, key_with: KeyWith, policy_of: PolicyOf
) -> None:
    only_reading = policy_of(writer, scopes=["state:read"])
    only_writing = policy_of(writer, scopes=["state:write"])
    both = policy_of(writer)
    other = key_with(*WRITER)
    another = policy_of(other)

    answer = other.send("PATCH", writer.path, {"scopes": ["federation:write", "state:read"]})

    assert answer.status_code == 200
    for policy in (only_reading, both, only_writing, another):
        policy.refresh_from_db()
    assert (only_reading.scopes, only_reading.disabled_at) == (["state:read"], None)
    assert (both.scopes, both.disabled_at) == (["state:read"], None)
    assert only_writing.disabled_at is not None
    assert another.scopes == ["state:read", "state:write"]
    event = AuditEvent.objects.get(action="trust_policy.update")
    assert (event.resource_id, event.details) == (
        both.pk,
        {
            "scopes": {"from": ["state:read", "state:write"], "to": ["state:read"]},
            "ancestor": writer.key_id,
        },
    )


def test_policies_of_other_owners_and_bindings_are_missing(
    writer: KeyOwner, outsider: KeyOwner, key_with: KeyWith, policy_of: PolicyOf
) -> None:
    policy = policy_of(writer)
    others = key_with(*WRITER, user=outsider.key.created_by)
    bound = key_with(*WRITER, binding=CLUSTER)

    for client in (others, bound):
        assert client.get(PATH).json()["trust_policies"] == []
        for answer in (
            client.get(f"{PATH}/{policy.pk}"),
            change(client, policy, name="x"),
            client.send("POST", f"{PATH}/{policy.pk}:disable"),
            client.send("POST", f"{PATH}/{policy.pk}:test", {"claims": {}}),
        ):
            assert (answer.status_code, error_reason(answer)) == (404, "TRUST_POLICY_NOT_FOUND")


def test_token_without_the_scope_is_rejected(
    key_with: KeyWith, writer: KeyOwner, policy_of: PolicyOf
) -> None:
    policy = policy_of(writer)
    other = key_with("apikey:read", "apikey:write", "state:write")

    for answer in (
        other.get(PATH),
        other.get(f"{PATH}/{policy.pk}"),
        change(other, policy, name="x"),
        other.send("POST", f"{PATH}/{policy.pk}:disable"),
        other.send("POST", f"{PATH}/{policy.pk}:test", {"claims": {}}),
    ):
        assert (answer.status_code, error_reason(answer)) == (403, "SCOPE_INSUFFICIENT")


def test_a_disabled_policy_stays_so(writer: KeyOwner, policy_of: PolicyOf) -> None:
    policy = policy_of(writer)

    for _ in range(2):
        answer = writer.send("POST", f"{PATH}/{policy.pk}:disable")
        assert answer.json()["trust_policy"]["disabled_at"] is not None

    assert error_reason(change(writer, policy, name="x")) == "TRUST_POLICY_DISABLED"
    assert AuditEvent.objects.filter(action="trust_policy.disable").count() == 1


def locked_ids(captured: CaptureQueriesContext, *ids: str) -> set[str]:
    """Return the IDs whose rows were selected only to lock them."""
    alone = re.compile(r"SELECT [^,]+ FROM")
    return {
        one
        for one in ids
        for query in captured
        if alone.match(query["sql"])
        and f"'{one}'" in query["sql"]
        and (connection.vendor == "sqlite" or "FOR NO KEY UPDATE" in query["sql"])
    }


def test_makers_are_locked_during_a_change(writer: KeyOwner, issuer: Issuer) -> None:
    """A concurrent revocation waits and then finds the created or changed policy."""
    client = _minted(writer, *WRITER)
    token = AccessToken.objects.get()
    with CaptureQueriesContext(connection) as making:
        assert create(client, issuer).status_code == 201
    policy = TrustPolicy.objects.get()
    with CaptureQueriesContext(connection) as changing:
        assert change(writer, policy, name="other").status_code == 200

    for captured in (making, changing):
        assert locked_ids(captured, writer.key_id, token.pk) == {writer.key_id, token.pk}


def test_past_expiry_is_rejected(writer: KeyOwner, issuer: Issuer) -> None:
    past = (timezone.now() - dt.timedelta(days=1)).isoformat()

    response = create(writer, issuer, expires_at=past)

    assert violations(response) == [("trust_policy.expires_at", "PAST")]


def test_weak_condition_returns_a_warning(writer: KeyOwner, issuer: Issuer) -> None:
    conditions = [*GITHUB, {"claim": "actor", "equals": "ada"}]

    (warning,) = create(writer, issuer, conditions=conditions).json()["trust_policy"]["warnings"]

    assert warning.startswith("actor ")


def test_unchanged_patch_records_no_event(writer: KeyOwner, policy_of: PolicyOf) -> None:
    policy = policy_of(writer)

    assert change(writer, policy, name="deploy").status_code == 200

    assert not AuditEvent.objects.filter(action="trust_policy.update").exists()
