"""The jobs of docs/how-to/keyless-pipelines.md and ci.md, with a right and a wrong token."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.docs.conftest import readers
from tests.docs.walk import ROOT
from tests.support.issuer import KEYS, IssuerServer, Key, claims_of, issuer_server, respond, sign
from tests.support.server import LiveServer, live_server

PAGE = (ROOT / "docs/how-to/keyless-pipelines.md").read_text()
ADDRESS = "https://infra.example.com"
#: The only issuers of their platforms; their keys are fetched on loopback.
URLS = {
    "BUILDKITE": "https://agent.buildkite.com",
    "KUBERNETES": "https://kubernetes.default.svc.cluster.local",
}


class Outcome(NamedTuple):
    """The end of a job: its exit code, its output, and the token for Terraform."""

    code: int
    output: str
    token: str


class Jobs:
    """A server, the policies of the page, and the jobs of the page."""

    def __init__(self, server: LiveServer, issuer: IssuerServer, directory: Path) -> None:
        self.server, self.issuer, self.directory = server, issuer, directory
        (directory / "ca.pem").write_text(issuer.ca)
        keys = {"keys": [key.public for key in issuer.keys]}
        (directory / "keys.json").write_text(json.dumps(keys))
        self.policies: dict[str, tuple[dict[str, Any], str]] = {}
        for text in _blocks("toml"):
            self.trust(text)

    def trust(self, text: str) -> None:
        (issuer,) = tomllib.loads(text)["issuers"]
        (policy,) = tomllib.loads(text)["trust_policies"]
        kind = issuer["kind"]
        more = ['algorithms = ["ES256"]']
        if "inline_keys_file" not in issuer:
            more.append('ca_file = "ca.pem"')
        if kind == "BUILDKITE":
            more.append(f'jwks_url = "{self.issuer.url}{KEYS}"')
        elif kind != "KUBERNETES":
            text = re.sub(r"^url = .*\n", "", text, flags=re.MULTILINE)
            more.append(f'url = "{self.issuer.url}"')
        file = self.directory / "trust.toml"
        added = "\n".join([f'kind = "{kind}"', *more])
        file.write_text(self.meant(text).replace(f'kind = "{kind}"', added))
        (printed,) = self.server.run_commands(
            ("trust", "--file", str(file), "--create-users", "--json")
        )
        (made,) = json.loads(printed)["trust_policies"]
        self.policies[kind] = (policy, made["id"])

    def meant(self, text: str) -> str:
        return text.replace(ADDRESS, self.server.url)

    def token(self, kind: str, *, is_trusted: bool) -> str:
        """Return a token that meets all conditions of the policy, or all but the first."""
        policy, _ = self.policies[kind]
        claims = claims_of(kind, URLS.get(kind, self.issuer.url), aud=self.server.url)
        for number, condition in enumerate(policy["conditions"]):
            *path, last = condition["claim"].removeprefix("/").split("/")
            where = claims
            for name in path:
                where = where[name]
            where[last] = condition["equals"] if number or is_trusted else "another"
        if kind == "GITLAB":
            claims["job_project_id"] = claims["project_id"]
        return sign(claims, self.issuer.keys[0])

    def run(self, kind: str, script: str, shell: list[str], **variables: str) -> Outcome:
        """Run the script of a job as its platform does, and then a further line."""
        _, policy_id = self.policies[kind]
        exported = self.directory / "github.env"
        exported.write_text("")
        ending = '\necho "TF_HTTP_PASSWORD=$TF_HTTP_PASSWORD" >> "$GITHUB_ENV"'
        text = self.meant(script).replace("fed-…", policy_id)
        text = text.replace("/var/run/infra/token", str(self.directory / "pod-token"))
        done = subprocess.run(
            [*shell, "-c", text + (ending if kind != "GITHUB" else "")],
            cwd=self.directory,
            env={
                **readers(self.directory, {}),
                "PATH": f"{self.directory}:{os.environ['PATH']}",
                "CURL_CA_BUNDLE": str(self.directory / "ca.pem"),
                "GITHUB_ENV": str(exported),
                "INFRA": self.server.url,
                **variables,
            },
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        _, _, token = exported.read_text().strip().rpartition("=")
        return Outcome(done.returncode, done.stdout + done.stderr, token)


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    directory = tmp_path_factory.mktemp("jobs")
    with (
        issuer_server(directory) as issuer,
        live_server(ISSUER_NETWORKS="127.0.0.0/8") as server,
    ):
        yield Jobs(server, issuer, directory)


def github(jobs: Jobs, *, is_trusted: bool) -> Outcome:
    """Run the step of a workflow. GitHub's default shell has no pipefail."""
    workflow, _, _ = map(yaml.safe_load, _blocks("yaml"))
    (step,) = (s for s in workflow["jobs"]["apply"]["steps"] if "oauth/token" in s.get("run", ""))
    token = json.dumps({"value": jobs.token("GITHUB", is_trusted=is_trusted)}).encode()
    path = f"/oidc?api-version=2&audience={jobs.server.url}"
    jobs.issuer.answers(path, lambda handler: respond(handler, token))
    return jobs.run(
        "GITHUB",
        step["run"],
        ["bash", "-e"],
        ACTIONS_ID_TOKEN_REQUEST_TOKEN="of the run",
        ACTIONS_ID_TOKEN_REQUEST_URL=f"{jobs.issuer.url}/oidc?api-version=2",
    )


def gitlab(jobs: Jobs, *, is_trusted: bool) -> Outcome:
    _, pipeline, _ = map(yaml.safe_load, _blocks("yaml"))
    lines = [line for line in pipeline["apply"]["script"] if not line.startswith("terraform")]
    proof = jobs.token("GITLAB", is_trusted=is_trusted)
    return jobs.run("GITLAB", "\n".join(lines), ["sh", "-e"], PROOF=proof)


def buildkite(jobs: Jobs, *, is_trusted: bool) -> Outcome:
    """Run the command of a step; the agent's own program prints the token."""
    agent = jobs.directory / "buildkite-agent"
    token = jobs.token("BUILDKITE", is_trusted=is_trusted)
    expected = (
        f"oidc request-token --audience {jobs.server.url} --claim organization_id "
        "--claim pipeline_id"
    )
    agent.write_text(f'#!/bin/sh\ntest "$*" = "{expected}" && echo {token}\n')
    agent.chmod(0o700)
    script, _ = _blocks("sh")
    return jobs.run("BUILDKITE", script, ["bash"])


def kubernetes(jobs: Jobs, *, is_trusted: bool) -> Outcome:
    (jobs.directory / "pod-token").write_text(jobs.token("KUBERNETES", is_trusted=is_trusted))
    _, script = _blocks("sh")
    return jobs.run("KUBERNETES", script, ["sh"])


PLATFORMS = {"GITHUB": github, "GITLAB": gitlab, "BUILDKITE": buildkite, "KUBERNETES": kubernetes}


def test_every_platform_of_the_page_is_run(jobs: Jobs) -> None:
    assert set(jobs.policies) == set(PLATFORMS)


@pytest.mark.parametrize("kind", PLATFORMS)
def test_a_trusted_job_gets_a_token(jobs: Jobs, kind: str) -> None:
    done = PLATFORMS[kind](jobs, is_trusted=True)

    assert done.code == 0, done.output
    assert done.token.startswith("iss_")


@pytest.mark.parametrize("kind", PLATFORMS)
def test_a_refused_job_fails_with_the_reason(jobs: Jobs, kind: str) -> None:
    done = PLATFORMS[kind](jobs, is_trusted=False)

    assert done.code != 0
    assert done.token == ""
    assert '"error":"invalid_grant"' in done.output
    found = re.search(r"Request id: (\w{32})\.", done.output)
    assert found is not None, done.output
    assert _refusal(jobs, found[1])["details"]["reason"] == "conditions_unmet"


def _refusal(jobs: Jobs, request_id: str) -> Any:
    """Return the event of the audit log with this request id."""
    path = f"/api/v1/audit-events?filter=field%5B%27request_id%27%5D%3D%27{request_id}%27"
    answer = jobs.server.request("GET", path, token=jobs.server.token("audit:read"))
    (event,) = answer.json()["audit_events"]
    assert event["action"] == "assertion.refuse"
    return event


@pytest.mark.parametrize("kind", PLATFORMS)
def test_a_service_that_is_away_fails_the_job(jobs: Jobs, kind: str) -> None:
    jobs.server.stop()
    try:
        done = PLATFORMS[kind](jobs, is_trusted=True)
    finally:
        jobs.server.start()

    assert done.code != 0
    assert done.token == ""
    assert "Failed to connect" in done.output


def test_a_platform_without_a_token_fails_the_job(jobs: Jobs) -> None:
    """GitHub without ``id-token: write``: the address of the token refuses."""
    (step,) = (s for s in yaml.safe_load(_blocks("yaml")[0])["jobs"]["apply"]["steps"] if "run" in s
               and "oauth" in s["run"])  # fmt: skip
    path = f"/denied?x=1&audience={jobs.server.url}"
    jobs.issuer.answers(path, lambda handler: respond(handler, b"{}", 403))

    done = jobs.run(
        "GITHUB",
        step["run"],
        ["bash", "-e"],
        ACTIONS_ID_TOKEN_REQUEST_TOKEN="",
        ACTIONS_ID_TOKEN_REQUEST_URL=f"{jobs.issuer.url}/denied?x=1",
    )

    assert done.code != 0
    assert done.token == ""


def test_inline_keys_are_rotated_without_a_gap(jobs: Jobs) -> None:
    """As the page says: both keys are trusted until the old one is removed."""
    (text,) = (text for text in _blocks("toml") if "inline_keys_file" in text)
    old, new = jobs.issuer.keys[0], Key("two")
    accepted = []
    for trusted in ([old], [old, new], [new], [old]):
        keys = {"keys": [key.public for key in trusted]}
        (jobs.directory / "keys.json").write_text(json.dumps(keys))
        jobs.trust(text)
        for key in (old, new):
            jobs.issuer.keys[0] = key
            accepted.append(kubernetes(jobs, is_trusted=True).code == 0)
    jobs.issuer.reset()

    assert accepted == [True, False, True, True, False, True, True, False]
