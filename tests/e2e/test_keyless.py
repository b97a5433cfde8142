"""Pipelines without secrets: a platform's token, one request, and the real terraform."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.backend import Backend
from tests.e2e.conftest import BINARY
from tests.e2e.remote import RemoteTerraform
from tests.e2e.terraform import Terraform
from tests.e2e.together import in_threads
from tests.support.issuer import (
    AUDIENCE,
    CLAIMS,
    CONDITIONS,
    KEYS,
    RUNS,
    IssuerServer,
    claims_of,
    issuer_server,
    sign,
)
from tests.support.server import LiveServer, live_server

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
TOKEN_TYPE = "urn:ietf:params:oauth:token-type:jwt"
#: The only issuer of its platform; its keys are fetched on loopback.
URLS = {"BUILDKITE": "https://agent.buildkite.com"}


class Keyless:
    """A server, an issuer of each platform's tokens, and a policy that trusts each."""

    def __init__(self, server: LiveServer, issuer: IssuerServer, directory: Path) -> None:
        self.server, self.issuer = server, issuer
        (directory / "ca.pem").write_text(issuer.ca)
        file = directory / "trust.toml"
        file.write_text("\n".join(map(self._tables, CLAIMS)))
        (printed,) = server.run_commands(("trust", "--file", str(file), "--create-users", "--json"))
        made = json.loads(printed)["trust_policies"]
        self.policies = {policy["name"]: policy["id"] for policy in made}

    def _tables(self, kind: str) -> str:
        jwks_url = f'jwks_url = "{self.issuer.url}{KEYS}"' if kind in URLS else ""
        conditions = ", ".join(
            "{" + ", ".join(f"{name} = {json.dumps(v)}" for name, v in condition.items()) + "}"
            for condition in CONDITIONS[kind]
        )
        return f"""
[[issuers]]
name = "{kind}"
kind = "{kind}"
url = "{self.url_of(kind)}"
audience = "{AUDIENCE}"
algorithms = ["ES256"]
ca_file = "ca.pem"
{jwks_url}

[[trust_policies]]
name = "{kind}"
issuer = "{kind}"
owner = "pipelines"
scopes = ["state:read", "state:write"]
conditions = [{conditions}]
"""

    def url_of(self, kind: str) -> str:
        return URLS.get(kind, self.issuer.url)

    def token(self, kind: str) -> str:
        """Return the platform's token of a run."""
        return sign(claims_of(kind, self.url_of(kind)), self.issuer.keys[0])

    def exchange(self, kind: str, token: str) -> Any:
        body = {
            "grant_type": GRANT,
            "client_id": self.policies[kind],
            "subject_token_type": TOKEN_TYPE,
            "subject_token": token,
        }
        return self.server.request(
            "POST",
            "/v1/oauth/token",
            json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )


@pytest.fixture(scope="module")
def keyless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyless]:
    directory = tmp_path_factory.mktemp("keyless")
    with (
        issuer_server(directory) as issuer,
        live_server(ISSUER_NETWORKS="127.0.0.0/8", REMOTE_BACKEND="true") as server,
    ):
        yield Keyless(server, issuer, directory)


@pytest.mark.terraform
@pytest.mark.parametrize("kind", CLAIMS)
def test_platform_token_applies(keyless: Keyless, kind: str, tmp_path: Path) -> None:
    """With curl, like a pipeline's script; the audit log names the run."""
    if BINARY is None:
        pytest.skip("neither terraform nor tofu is on the PATH")
    script = """
    curl -sf "$BASE_URL/v1/oauth/token" \\
      -d grant_type=urn:ietf:params:oauth:grant-type:token-exchange \\
      -d client_id="$TRUST_POLICY_ID" \\
      -d subject_token_type=urn:ietf:params:oauth:token-type:jwt \\
      --data-urlencode subject_token="$PLATFORM_TOKEN"
    """
    environment = {
        "BASE_URL": keyless.server.url,
        "TRUST_POLICY_ID": keyless.policies[kind],
        "PLATFORM_TOKEN": keyless.token(kind),
    }
    done = subprocess.run(
        ["sh", "-c", script], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    backend = Backend(keyless.server, json.loads(done.stdout)["access_token"])
    tf = Terraform(tmp_path / "tf", backend.address, backend.token)
    tf.write('resource "terraform_data" "a" { input = "x" }')
    tf.run("init")

    assert "Resources: 1 added, 0 changed, 0 destroyed" in tf.apply().out

    (exchanged, pushed) = events(keyless, "access_token.exchange", "state.push")
    assert pushed["token_id"] == exchanged["token_id"] == exchanged["resource_id"]
    assert pushed["actor_name"] == "pipelines"
    run = exchanged["details"]["run"]
    assert {name: run[name] for name in RUNS[kind]} == RUNS[kind]
    assert environment["PLATFORM_TOKEN"] not in keyless.server.log.read_text()


@pytest.mark.terraform
def test_exchanged_token_applies_through_the_remote_backend(
    keyless: Keyless, tmp_path: Path
) -> None:
    """The token is in ``TF_TOKEN_…``; another token of the run cannot use its lock."""
    if BINARY is None:
        pytest.skip("neither terraform nor tofu is on the PATH")
    tokens = [keyless.exchange("GITHUB", keyless.token("GITHUB")).json() for _ in range(2)]
    first, second = (
        RemoteTerraform(tmp_path / f"tf{turn}", keyless.server, token["access_token"])
        for turn, token in enumerate(tokens)
    )
    for tf in (first, second):
        tf.use_cloud('name = "keyless-prod"', organization="default")
        tf.write('resource "terraform_data" "a" { input = "x" }')
        tf.run("init")

    assert "Resources: 1 added, 0 changed, 0 destroyed" in first.apply().out

    exchanged, locked, pushed, unlocked = events(
        keyless, "access_token.exchange", "state.lock", "state.push", "state.unlock"
    )
    assert locked["token_id"] == pushed["token_id"] == unlocked["token_id"]
    assert pushed["token_id"] != exchanged["token_id"]  # that of the second token
    assert pushed["actor_name"] == "pipelines"
    second.run("plan", "-detailed-exitcode", code=0)
    token = tokens[0]["access_token"]
    workspace = keyless.server.request(
        "GET", "/api/v2/organizations/default/workspaces/keyless-prod", token=token
    ).json()["data"]["id"]
    path = f"/api/v2/workspaces/{workspace}/actions/lock"
    assert keyless.server.request("POST", path, token=token).status == 200
    assert "workspace already locked" in second.apply(code=1).out
    assert token not in keyless.server.log.read_text()


def events(keyless: Keyless, *actions: str) -> list[Any]:
    """Return the last event of each of these actions."""
    token = keyless.server.token("audit:read")
    found = []
    for action in actions:
        path = f"/api/v1/audit-events?page_size=1&filter=field%5B'action'%5D%20%3D%20'{action}'"
        answer = keyless.server.request("GET", path, token=token)
        found += answer.json()["audit_events"]
    return found


def test_one_of_a_hundred_exchanges_of_an_assertion_succeeds(keyless: Keyless) -> None:
    token, before = keyless.token("GITHUB"), keyless.issuer.requested[KEYS]

    answers = in_threads([lambda: keyless.exchange("GITHUB", token) for _ in range(100)])

    given = [answer for answer in answers if answer.status == 200]
    refused = [answer for answer in answers if answer.status != 200]
    assert len(given) == 1
    # On SQLite, where writers queue, a client may time out.
    assert {answer.status for answer in refused} <= {400, 503}
    assert {a.json()["error"] for a in refused if a.status == 400} == {"invalid_grant"}
    assert keyless.issuer.requested[KEYS] - before <= 1
