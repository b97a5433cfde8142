"""The identity of a reporting agent: the exchange of a pod's token, and the renewal."""

from __future__ import annotations

import json
import secrets
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.issuer import AUDIENCE, CONDITIONS, Key, claims_of, sign
from tests.support.server import LiveServer
from tests.workloads.collector.between import Between, answering, lost
from tests.workloads.collector.registered import Registered
from workloads.collector import service_credentials
from workloads.collector.destinations import NotReportedError
from workloads.collector.service_connection import ServiceConnection
from workloads.collector.service_credentials import ExchangedToken

ISSUER = "https://kubernetes.default.svc.cluster.local"


class Pod:
    """A pod whose account a policy trusts, as far as the agent in it sees it."""

    def __init__(self, live: LiveServer, registered: Registered, directory: Path) -> None:
        self.registered, self.key = registered, Key()
        self.identity, self.cache = directory / "token", directory / "cache"
        (directory / "keys.json").write_text(json.dumps({"keys": [self.key.public]}))
        name = f"cluster {secrets.token_hex(4)}"
        conditions = ", ".join(
            f'{{claim = "{condition["claim"]}", equals = "{condition["equals"]}"}}'
            for condition in CONDITIONS["KUBERNETES"]
        )
        trust = directory / "trust.toml"
        trust.write_text(f"""
[[issuers]]
name = "{name}"
kind = "KUBERNETES"
url = "{ISSUER}"
audience = "{AUDIENCE}"
algorithms = ["ES256"]
inline_keys_file = "keys.json"

[[trust_policies]]
name = "{name}"
issuer = "{name}"
owner = "agents"
scopes = ["cluster:report"]
binding.cluster_id = "{registered.id}"
conditions = [{conditions}]
""")
        (printed,) = live.run_commands(("trust", "--file", str(trust), "--create-users", "--json"))
        self.policy: str = json.loads(printed)["trust_policies"][0]["id"]
        self.renew()

    def renew(self, **claims: Any) -> None:
        """Put another token into the pod, as Kubernetes does after a while."""
        self.identity.write_text(sign(claims_of("KUBERNETES", ISSUER, **claims), self.key))

    def credentials(self, between: Between, *, cached: bool = False) -> ExchangedToken:
        connection = ServiceConnection(between.url)
        cache = self.cache if cached else None
        return ExchangedToken(connection, self.policy, self.identity, cache)

    def works(self, token: str) -> bool:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        path = f"/api/v1/clusters/{self.registered.id}/workloads:report-failure"
        answer = self.registered.live.request("POST", path, b'{"reason":"OTHER"}', headers=headers)
        assert answer.status in {204, 401}, answer.body
        return answer.status == 204


@pytest.fixture
def pod(live: LiveServer, registered: Registered, tmp_path: Path) -> Pod:
    return Pod(live, registered, tmp_path)


class Clock:
    """The wall clock of the agent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        real = time.time
        monkeypatch.setattr(service_credentials.time, "time", lambda: real() + self.ahead)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def exchanges(between: Between) -> int:
    return len([path for _, path, *_ in between.requests if path == "/v1/oauth/token"])


def test_token_is_exchanged_once(pod: Pod, between: Between) -> None:
    credentials = pod.credentials(between)

    tokens = {credentials.token() for _ in range(3)}

    (token,) = tokens
    assert pod.works(token)
    assert exchanges(between) == 1


def test_it_is_renewed_before_it_ends(pod: Pod, between: Between, clock: Clock) -> None:
    credentials = pod.credentials(between)
    first = credentials.token()
    clock.ahead = 2399
    assert credentials.token() == first
    # Not yet, when Kubernetes has no other; and not each time that it is asked for.
    clock.ahead = 2401
    assert credentials.token() == first
    pod.renew()
    assert credentials.token() == first
    clock.ahead += 31

    second = credentials.token()

    assert second != first
    assert pod.works(second)
    assert exchanges(between) == 2


@pytest.mark.parametrize("answer", [
    answering(503, Retry_After="5"), answering(200, b"<html>"), answering(400, b'{"error": "x"}'),
])  # fmt: skip
def test_previous_token_is_used_until_renewal_succeeds(
    pod: Pod, between: Between, clock: Clock, answer: Any
) -> None:
    credentials = pod.credentials(between)
    first = credentials.token()
    pod.renew()
    between.exchanges += [answer, answer]
    clock.ahead = 2401
    assert credentials.token() == first
    clock.ahead = 3601

    with pytest.raises(NotReportedError, match="the token exchange failed"):
        credentials.token()
    assert credentials.token() != first
    assert exchanges(between) == 4


def test_after_a_restart_it_is_still_there(pod: Pod, between: Between, clock: Clock) -> None:
    """The pod's token is as it was, and the service takes it only once."""
    first = pod.credentials(between, cached=True).token()

    again = pod.credentials(between, cached=True)

    assert again.token() == first
    assert exchanges(between) == 1
    assert stat.S_IMODE(pod.cache.stat().st_mode) == 0o600
    assert [path.name for path in pod.cache.parent.glob("tmp*")] == []
    clock.ahead = 3601
    with pytest.raises(NotReportedError, match="has already been exchanged"):
        again.token()
    pod.renew()
    assert again.token() != first
    assert pod.credentials(between, cached=True).token() == again.token()


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[" * 10_000, b'{"access_token": 1}'])
def test_damaged_cache_is_ignored(pod: Pod, between: Between, content: bytes) -> None:
    pod.cache.write_bytes(content)

    assert pod.works(pod.credentials(between, cached=True).token())


def test_unwritable_cache_is_ignored(pod: Pod, between: Between) -> None:
    pod.cache.mkdir()

    assert pod.works(pod.credentials(between, cached=True).token())
    assert [path.name for path in pod.cache.parent.glob("tmp*")] == []


def test_a_lost_answer_costs_the_pods_token(pod: Pod, between: Between) -> None:
    between.exchanges.append(lost)
    credentials = pod.credentials(between)
    for message in ("does not respond", "400 invalid_grant"):
        with pytest.raises(NotReportedError, match=message):
            credentials.token()

    pod.renew()

    assert pod.works(credentials.token())


def test_a_token_that_is_refused_is_exchanged_anew(pod: Pod, between: Between) -> None:
    credentials = pod.credentials(between)
    first = credentials.token()
    credentials.refused("another")
    assert credentials.token() == first

    credentials.refused(first)

    # It would be refused for certain, and fill the trail.
    with pytest.raises(NotReportedError, match="has already been exchanged"):
        credentials.token()
    assert exchanges(between) == 1
    pod.renew()
    assert credentials.token() != first


def test_untrusted_account_is_reported(pod: Pod, between: Between) -> None:
    pod.renew(aud=["https://other.example"])

    with pytest.raises(NotReportedError, match=r"^the token exchange failed: 400 invalid_grant"):
        pod.credentials(between).token()
