"""The policies and jobs of docs/how-to/keyless-pipelines.md, on a live server."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.docs.walk import ROOT
from tests.support.issuer import KEYS, IssuerServer, claims_of, issuer_server, respond, sign
from tests.support.pipelines import Pipeline
from tests.support.server import LiveServer, live_server

PAGE: Final = (ROOT / "docs/how-to/keyless-pipelines.md").read_text()
ADDRESS: Final = "https://infra.example.com"
STATE: Final = "payments/live"
#: The only issuers of their platforms; their keys are fetched on loopback.
URLS: Final = {
    "BUILDKITE": "https://agent.buildkite.com",
    "KUBERNETES": "https://kubernetes.default.svc.cluster.local",
}
#: The value of the job's request for an identity token on GitHub.
REQUEST_TOKEN: Final = "request-token-of-the-run"


def blocks(language: str) -> list[str]:
    """Return the blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


class PlatformJobs:
    """The jobs of the page, for a service at an address; ``policies`` are those that it trusts."""

    def __init__(self, url: str, issuer: IssuerServer, directory: Path) -> None:
        self.url, self.issuer, self.directory = url, issuer, directory
        (directory / "ca.pem").write_text(issuer.ca)
        keys = {"keys": [key.public for key in issuer.keys]}
        (directory / "keys.json").write_text(json.dumps(keys))
        #: For each platform its policy in the page, and the policy's id.
        self.policies: dict[str, tuple[dict[str, Any], str]] = {}
        #: The platforms' tokens so far.
        self.identities: list[str] = []

    def on_loopback(self, text: str) -> str:
        """Return a block of issuer and policy with the issuer on loopback."""
        (issuer,) = tomllib.loads(text)["issuers"]
        kind = issuer["kind"]
        more = ['algorithms = ["ES256"]']
        if "inline_keys_file" not in issuer:
            more.append(f'ca_file = "{self.directory / "ca.pem"}"')
        if kind == "BUILDKITE":
            more.append(f'jwks_url = "{self.issuer.url}{KEYS}"')
        elif kind != "KUBERNETES":
            text = re.sub(r"^url = .*\n", "", text, flags=re.MULTILINE)
            more.append(f'url = "{self.issuer.url}"')
        added = "\n".join([f'kind = "{kind}"', *more])
        return self.meant(text).replace(f'kind = "{kind}"', added)

    def trusted(self, text: str, policy_id: str) -> None:
        """Remember the id that the service gave the policy of a block."""
        (issuer,), (policy,) = (tomllib.loads(text)[name] for name in ("issuers", "trust_policies"))
        self.policies[issuer["kind"]] = (policy, policy_id)

    def meant(self, text: str) -> str:
        return text.replace(ADDRESS, self.url)

    def token(self, kind: str, *, is_trusted: bool) -> str:
        """Return a token that meets all conditions of the policy, or all but the first."""
        policy, _ = self.policies[kind]
        claims = claims_of(kind, URLS.get(kind, self.issuer.url), aud=self.url)
        for number, condition in enumerate(policy["conditions"]):
            *path, last = condition["claim"].removeprefix("/").split("/")
            where = claims
            for name in path:
                where = where[name]
            where[last] = condition["equals"] if number or is_trusted else "another"
        if kind == "GITLAB":
            claims["job_project_id"] = claims["project_id"]
        self.identities.append(sign(claims, self.issuer.keys[0]))
        return self.identities[-1]

    def pipeline(self, kind: str, name: str, *, is_trusted: bool = True, **more: str) -> Pipeline:
        """Return a runner of the platform in an empty directory of this name."""
        directory = self.directory / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        variables = {"CURL_CA_BUNDLE": str(self.directory / "ca.pem")}
        if kind == "GITHUB":
            variables |= {
                "ACTIONS_ID_TOKEN_REQUEST_TOKEN": REQUEST_TOKEN,
                "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.issuer.url}/oidc?api-version=2",
            }
            self.issuer.answers("/oidc", partial(self._github, is_trusted=is_trusted))

        def identity(audience: str) -> str:
            assert audience == self.url
            return self.token(kind, is_trusted=is_trusted)

        return Pipeline(directory, {}, identity, **{**variables, **more})

    def _github(self, handler: BaseHTTPRequestHandler, *, is_trusted: bool) -> None:
        """Respond like GitHub's endpoint of identity tokens."""
        query = parse_qs(urlsplit(handler.path).query)
        if handler.headers["Authorization"] != f"Bearer {REQUEST_TOKEN}":
            respond(handler, b"{}", 401)
        elif query == {"api-version": ["2"], "audience": [self.url]}:
            body = {"count": 1, "value": self.token("GITHUB", is_trusted=is_trusted)}
            respond(handler, json.dumps(body).encode())
        else:
            respond(handler, b"{}", 400)

    def configuration(self, kind: str) -> Any:
        """Return the workflow of the page for GitHub or GitLab."""
        text = blocks("yaml")[("GITHUB", "GITLAB").index(kind)]
        return yaml.safe_load(self.meant(text).replace("fed-…", self.policies[kind][1]))


class Jobs(PlatformJobs):
    """A live server that trusts the policies of the page, and its jobs."""

    def __init__(self, server: LiveServer, issuer: IssuerServer, directory: Path) -> None:
        super().__init__(server.url, issuer, directory)
        self.server = server
        for text in blocks("toml"):
            self.trust(text)

    def trust(self, text: str) -> None:
        """Apply a block of issuer and policy."""
        file = self.directory / "trust.toml"
        file.write_text(self.on_loopback(text))
        (printed,) = self.server.run_commands(
            ("trust", "--file", str(file), "--create-users", "--json")
        )
        (made,) = json.loads(printed)["trust_policies"]
        self.trusted(text, made["id"])


@contextlib.contextmanager
def keyless_jobs(directory: Path) -> Iterator[Jobs]:
    """Run a server that trusts the platforms of the page."""
    with (
        issuer_server(directory) as issuer,
        live_server(ISSUER_NETWORKS="127.0.0.0/8") as server,
    ):
        yield Jobs(server, issuer, directory)
