"""Two simultaneous requests to a live server have a consistent result."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.together import in_threads
from tests.support.server import Answer, LiveServer

pytestmark = pytest.mark.both

ROUNDS = 5
SCOPES = ["apikey:read", "apikey:write", "state:read", "state:write"]


class LiveKey:
    """An API key on the live server."""

    def __init__(self, server: LiveServer, *scopes: str) -> None:
        self.server = server
        self.secret = server.api_key(*scopes)

    def send(self, method: str, path: str, body: Any = None, *, secret: str = "") -> Answer:
        return self.server.request(
            method,
            path,
            b"" if body is None else json.dumps(body).encode(),
            token=secret or self.secret,
            headers={"Content-Type": "application/json"},
        )

    def make(self) -> tuple[str, str]:
        """Return the path and the secret of a new key with these fields."""
        body = {"api_key": {"name": "raced", "scopes": SCOPES}}
        answer = self.send("POST", "/v1/api-keys", body).json()
        return f"/v1/api-keys/{answer['api_key']['id']}", answer["secret"]

    def works(self, secret: str) -> bool:
        return self.send("GET", "/v1/whoami", secret=secret).status == 200


@pytest.fixture(scope="module")
def key(live: LiveServer) -> LiveKey:
    return LiveKey(live, *SCOPES)


def at_once(*requests: Any) -> list[Answer]:
    """Send them all at the same moment and return their answers in their order."""
    barrier = threading.Barrier(len(requests))

    def send(request: Any) -> Answer:
        barrier.wait(30)
        answer: Answer = request()
        return answer

    return in_threads([lambda request=request: send(request) for request in requests])


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_only_one_of_many_rotations_succeeds(key: LiveKey, round_: int) -> None:
    path, secret = key.make()

    answers = at_once(
        *[lambda: key.send("POST", path + ":rotate", secret=secret) for _ in range(8)]
    )

    statuses = Counter(answer.status for answer in answers)
    assert statuses[200] == 1
    assert set(statuses) <= {200, 401, 409}
    (winner,) = [answer.json()["secret"] for answer in answers if answer.status == 200]
    assert key.works(winner)
    assert not key.works(secret)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_rotation_and_revocation_are_serialized(key: LiveKey, round_: int) -> None:
    path, secret = key.make()

    rotation, revocation = at_once(
        lambda: key.send("POST", path + ":rotate", {"grace_period": 600}),
        lambda: key.send("POST", path + ":revoke"),
    )

    assert revocation.status == 200
    assert rotation.status in {200, 400}
    secrets = [secret]
    if rotation.status == 200:
        secrets.append(rotation.json()["secret"])
    else:
        assert rotation.reason == "API_KEY_REVOKED"
    shown = key.send("GET", path).json()["api_key"]
    assert shown["status"] == "API_KEY_STATUS_REVOKED"
    assert not any(key.works(each) for each in secrets)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_patches_of_different_fields_all_count(key: LiveKey, round_: int) -> None:
    path, _ = key.make()
    bodies: list[dict[str, Any]] = [
        {"name": "new"},
        {"scopes": ["state:read"]},
        {"expires_at": "2999-01-01T00:00:00Z"},
        {"binding": {"component_ids": ["00000000-0000-4000-8000-000000000001"]}},
    ]

    answers = at_once(*[lambda body=body: key.send("PATCH", path, body) for body in bodies])

    assert [answer.status for answer in answers] == [200] * 4
    shown = key.send("GET", path).json()["api_key"]
    assert (shown["name"], shown["scopes"]) == ("new", ["state:read"])
    assert shown["expires_at"] == "2999-01-01T00:00:00.000000Z"
    assert shown["binding"]["component_ids"] == ["00000000-0000-4000-8000-000000000001"]
    events = [answer for answer in answers if answer.json()["api_key"]["id"] == shown["id"]]
    assert len(events) == 4


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_concurrent_patches_of_a_field_store_a_sent_value(key: LiveKey, round_: int) -> None:
    path, _ = key.make()
    names = [f"name {number}" for number in range(8)]

    answers = at_once(*[lambda n=n: key.send("PATCH", path, {"name": n}) for n in names])

    assert {answer.status for answer in answers} == {200}
    assert key.send("GET", path).json()["api_key"]["name"] in names


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_patch_and_revocation_are_serialized(key: LiveKey, round_: int) -> None:
    path, secret = key.make()

    patch, revocation = at_once(
        lambda: key.send("PATCH", path, {"name": "new"}),
        lambda: key.send("POST", path + ":revoke"),
    )

    assert revocation.status == 200
    shown = key.send("GET", path).json()["api_key"]
    if patch.status == 200:
        assert shown["name"] == "new"
    else:
        assert (patch.status, patch.reason) == (400, "API_KEY_REVOKED")
        assert shown["name"] == "raced"
    assert not key.works(secret)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_minting_and_revocation_are_serialized(key: LiveKey, round_: int) -> None:
    path, secret = key.make()
    body = {"name": "x", "scopes": ["apikey:read"]}

    minted, revoked = at_once(
        lambda: key.send("POST", "/v1/access-tokens", body, secret=secret),
        lambda: key.send("POST", path + ":revoke"),
    )

    assert revoked.status == 200
    assert minted.status in {201, 401}
    if minted.status == 201:
        assert not key.works(minted.json()["secret"])


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_narrowing_and_a_rotation_by_the_narrow(key: LiveKey, round_: int) -> None:
    """A rotation requires all grants that the key has at that moment."""
    path, _ = key.make()
    narrow = key.send("POST", "/v1/api-keys", {"name": "narrow", "scopes": SCOPES[:3]}).json()
    key.send("PATCH", path, {"scopes": ["state:read"]})

    rotation, widening = at_once(
        lambda: key.send("POST", path + ":rotate", secret=narrow["secret"]),
        lambda: key.send("PATCH", path, {"scopes": ["state:write"]}),
    )

    assert widening.status == 200
    assert rotation.status in {200, 403}


POLICY_WRITER = [*SCOPES, "federation:write"]
POLICY = {
    "name": "deploy",
    "scopes": ["state:read"],
    "conditions": [
        {"claim": "repository_id", "equals": "651234"},
        {"claim": "repository_owner_id", "equals": "9919"},
    ],
}
TRUST = """
[[issuers]]
name = "raced"
kind = "GITHUB"
audience = "https://infra.example.com"
[[trust_policies]]
name = "raced"
issuer = "raced"
owner = "raced"
scopes = ["state:read"]
conditions = [
  { claim = "repository_id", equals = "651234" },
  { claim = "repository_owner_id", equals = "9919" },
]
"""


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_policy_creation_and_revocation_are_serialized(live: LiveServer, round_: int) -> None:
    """No policy of the revoked key remains, in either order."""
    writer = LiveKey(live, *POLICY_WRITER)
    issuer = {"kind": "GITHUB", "name": "github", "audience": "https://infra.example.com"}
    made = writer.send("POST", "/v1/issuers", {"issuer": issuer}).json()["issuer"]
    body = {"api_key": {"name": "raced", "scopes": POLICY_WRITER}}
    raced = writer.send("POST", "/v1/api-keys", body).json()
    policy = {"trust_policy": {**POLICY, "issuer_id": made["id"]}}

    creation, revocation = at_once(
        lambda: writer.send("POST", "/v1/trust-policies", policy, secret=raced["secret"]),
        lambda: writer.send("POST", f"/v1/api-keys/{raced['api_key']['id']}:revoke"),
    )

    assert revocation.status == 200
    assert creation.status in {201, 401}
    if creation.status == 201:
        policy_id = creation.json()["trust_policy"]["id"]
        shown = writer.send("GET", f"/v1/trust-policies/{policy_id}").json()["trust_policy"]
        assert shown["disabled_at"] is not None


def test_two_first_runs_of_trust(live: LiveServer, tmp_path: Path) -> None:
    path = tmp_path / "trust.toml"
    path.write_text(TRUST)
    command = ("trust", "--file", str(path), "--create-users", "--json")

    outcomes = [json.loads(output) for output in in_threads([lambda: live.manage(*command)] * 2)]

    results = [o["issuers"][0]["result"] + o["trust_policies"][0]["result"] for o in outcomes]
    assert sorted(results) == ["createdcreated", "unchangedunchanged"]


@pytest.mark.parametrize("what", ["create", "rotate"])
def test_twenty_times_the_same_request_acts_once(key: LiveKey, what: str) -> None:
    path, secret = key.make()
    body = {"api_key": {"name": f"once {what}", "scopes": SCOPES}}
    address, sent = ("/v1/api-keys", body) if what == "create" else (f"{path}:rotate", {})
    headers = {"Content-Type": "application/json", "Idempotency-Key": f"race of {what}"}

    def post() -> Answer:
        content = json.dumps(sent).encode()
        return key.server.request("POST", address, content, token=secret, headers=headers)

    answers = at_once(*[post] * 20)

    assert {answer.status for answer in answers} <= {200, 201, 409, 503}
    done = [answer for answer in answers if answer.status in (200, 201)]
    assert len({answer.body for answer in done}) == 1
    replayed = [answer.headers.get("Idempotent-Replayed") for answer in done]
    assert replayed.count(None) == 1
    after = post()
    assert (after.status, after.body) == (done[0].status, done[0].body)
    assert key.works(after.json()["secret"])
    if what == "create":
        made = key.send(
            "GET", f"/v1/api-keys?filter=field%5B%27name%27%5D%3D%27once%20{what}%27"
        ).json()
        assert len(made["api_keys"]) == 1, made
