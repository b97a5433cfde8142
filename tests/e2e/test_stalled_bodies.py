"""A caller that is revoked while its request's body is in transit has no further effect."""

from __future__ import annotations

import datetime as dt
import http.client
import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.apikeys.test_races import SCOPES, LiveKey, at_once
from tests.e2e.backend import lock_info
from tests.states.conftest import document
from tests.support.server import Answer, LiveServer

MORE = ("state:admin", "cluster:read", "cluster:write")


class Stalled:
    """A request whose headers and first body byte have been sent.

    A document or a lock is sent in chunks: the worker receives other bodies before it
    authenticates.
    """

    def __init__(self, server: LiveServer, token: str, method: str, path: str, body: Any) -> None:
        is_chunked = isinstance(body, bytes)
        self.body = body if is_chunked else json.dumps(body).encode()
        length = {"Transfer-Encoding": "chunked"}
        if is_chunked:
            self.body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        else:
            length = {"Content-Length": str(len(self.body))}
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self.connection.putrequest(method, path)
        for name, value in {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            **length,
        }.items():
            self.connection.putheader(name, value)
        self.connection.endheaders(self.body[:1])

    def go_on(self) -> Answer:
        self.connection.send(self.body[1:])
        response = self.connection.getresponse()
        answer = Answer(response.status, dict(response.getheaders()), response.read())
        self.connection.close()
        return answer


@pytest.fixture(scope="module")
def boss(live: LiveServer) -> LiveKey:
    return LiveKey(live, *SCOPES, *MORE)


class Victim:
    """A key that has created a key, a token, a state and a cluster, before it is revoked."""

    def __init__(self, boss: LiveKey) -> None:
        self.boss = boss
        self.path, self.secret = self._make(boss.secret)
        self.other, _ = self._make(boss.secret)
        fields = {"name": "x", "scopes": [*SCOPES, *MORE]}
        answer = boss.send("POST", "/v1/access-tokens", fields, secret=self.secret)
        self.token: str = answer.json()["secret"]
        self.state = f"/api/v1/state/{uuid.uuid4()}/env/{uuid.uuid4()}"
        assert self.action("POST", self.state, document(1)).status == 200
        made = self.action("POST", "/api/v1/clusters", {"name": str(uuid.uuid4())}).json()
        self.cluster = f"/api/v1/clusters/{made['cluster']['id']}"
        made = self.action("POST", "/api/v1/components", {"name": str(uuid.uuid4())}).json()
        self.component = f"/api/v1/components/{made['component']['id']}"
        assert self.action("GET", "/v1/whoami").status == 200

    def _make(self, secret: str) -> tuple[str, str]:
        body = {"name": "victim", "scopes": [*SCOPES, *MORE]}
        made = self.boss.send("POST", "/v1/api-keys", body, secret=secret).json()
        return f"/v1/api-keys/{made['api_key']['id']}", made["secret"]

    def action(self, method: str, path: str, body: Any = b"") -> Answer:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        return self.boss.server.request(method, path, content, token=self.token, headers=headers)

    def report(self) -> dict[str, Any]:
        now = dt.datetime.now(dt.UTC).isoformat()
        return {"reported_at": now, "workloads": []}


Action = Callable[[Victim], tuple[str, str, str, Any]]
NEW = {"name": "made too late", "scopes": ["state:read"]}
ACTIONS: dict[str, Action] = {
    "create a key": lambda v: (v.secret, "POST", "/v1/api-keys", NEW),
    "create a key by a token": lambda v: (v.token, "POST", "/v1/api-keys", NEW),
    "mint": lambda v: (v.secret, "POST", "/v1/access-tokens", NEW),
    "change a key": lambda v: (v.token, "PATCH", v.other, {"name": "made too late"}),
    "rotate a key": lambda v: (v.secret, "POST", f"{v.other}:rotate", {"grace_period": 0}),
    "revoke a key": lambda v: (v.token, "POST", f"{v.other}:revoke", {}),
    "push": lambda v: (v.token, "POST", v.state, document(2)),
    "lock": lambda v: (v.token, "LOCK", v.state, lock_info(uuid.uuid4())),
    "create a component": lambda v: (v.token, "POST", "/api/v1/components", {"name": "late"}),
    "rename a component": lambda v: (v.token, "PATCH", v.component, {"name": "late"}),
    "register a cluster": lambda v: (v.token, "POST", "/api/v1/clusters", {"name": "late"}),
    "rename a cluster": lambda v: (v.token, "PATCH", v.cluster, {"name": "late too"}),
    "report a failure": lambda v: (
        v.token,
        "POST",
        f"{v.cluster}/workloads:report-failure",
        {"reason": "OTHER"},
    ),
    "report": lambda v: (v.token, "PUT", f"{v.cluster}/workloads", v.report()),
}


def seen(boss: LiveKey, victim: Victim) -> list[Any]:
    """Return everything that the requests could have changed."""
    fields = {"name": "look", "scopes": [*SCOPES, *MORE]}
    token = boss.send("POST", "/v1/access-tokens", fields).json()["secret"]
    names = boss.send("GET", "/v1/api-keys?page_size=100").json()["api_keys"]
    late = [key["name"] for key in names if key["name"] == "made too late"]
    lists = [
        boss.send("GET", f"/api/v1/{name}?page_size=100", secret=token).json()[name]
        for name in ("components", "clusters")
    ]
    for cluster in lists[1]:  # ages, and what time makes of them: others have been reported to
        del cluster["collection"], cluster["health_status"]
    document = boss.send("GET", victim.state, secret=token).json()
    other = boss.send("GET", victim.other).json()["api_key"]
    records = boss.send(
        "GET", "/api/v1/states?filter=" + "field%5B'locked'%5D%20=%20true", secret=token
    ).json()["states"]
    return [late, lists, document, other, records]


@pytest.mark.parametrize("name", ACTIONS)
def test_body_received_after_the_revocation_is_rejected(boss: LiveKey, name: str) -> None:
    victim = Victim(boss)
    token, method, path, body = ACTIONS[name](victim)
    stalled = Stalled(boss.server, token, method, path, body)
    before = seen(boss, victim)

    assert boss.send("POST", f"{victim.path}:revoke").status == 200
    answer = stalled.go_on()

    assert (answer.status, answer.reason) == (401, "CREDENTIALS_INVALID")
    assert "WWW-Authenticate" in answer.headers
    assert seen(boss, victim) == before


def test_body_received_after_the_key_lost_scopes_is_rejected(boss: LiveKey) -> None:
    victim = Victim(boss)
    stalled = Stalled(boss.server, victim.token, "POST", victim.state, document(2))

    assert boss.send("PATCH", victim.path, {"scopes": ["state:read"]}).status == 200
    answer = stalled.go_on()

    assert (answer.status, answer.reason) == (503, "CALLER_CHANGED")
    assert answer.headers["Retry-After"] == "1"
    again = victim.action("POST", victim.state, document(2))
    assert (again.status, again.reason) == (403, "SCOPE_INSUFFICIENT")


def test_body_received_after_the_key_was_renamed(boss: LiveKey) -> None:
    victim = Victim(boss)
    for method, path, body in [
        ("POST", victim.state, document(2)),
        ("PUT", f"{victim.cluster}/workloads", victim.report()),
    ]:
        stalled = Stalled(boss.server, victim.token, method, path, body)
        assert boss.send("PATCH", victim.path, {"name": str(uuid.uuid4())}).status == 200
        assert stalled.go_on().status == 200


def test_body_received_after_the_token_expired_is_rejected(boss: LiveKey) -> None:
    victim = Victim(boss)
    fields = {"name": "short", "scopes": [*SCOPES, *MORE], "ttl": 2}
    token = boss.send("POST", "/v1/access-tokens", fields, secret=victim.secret).json()["secret"]
    stalled = Stalled(boss.server, token, "POST", victim.state, document(2))

    while boss.works(token):
        pass
    answer = stalled.go_on()

    assert (answer.status, answer.reason) == (401, "TOKEN_EXPIRED")


@pytest.mark.parametrize("round_", range(10))
def test_a_key_that_is_made_while_its_maker_is_revoked(boss: LiveKey, round_: int) -> None:
    """Either it is not created, or it is revoked as well: at any depth."""
    victim = Victim(boss)
    body = {"name": "child", "scopes": [*SCOPES, *MORE]}
    child = boss.send("POST", "/v1/api-keys", body, secret=victim.secret).json()

    made = [
        lambda secret=secret: boss.send("POST", "/v1/api-keys", body, secret=secret)
        for secret in (child["secret"], victim.token, victim.secret) * 2
    ]
    *answers, revoked = at_once(*made, lambda: boss.send("POST", f"{victim.path}:revoke"))

    assert revoked.status == 200
    assert {answer.status for answer in answers} <= {201, 401}
    born = [answer.json()["secret"] for answer in answers if answer.status == 201]
    assert not any(boss.works(secret) for secret in (child["secret"], *born))
    assert revoked.json()["descendants_revoked"] == 1 + len(born)
