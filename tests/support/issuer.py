"""An issuer of assertions on loopback: its keys over TLS, and tokens in the platforms' form."""

from __future__ import annotations

import datetime as dt
import json
import ssl
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.certificates import self_signed

AUDIENCE: Final = "https://infra.example"
DISCOVERY: Final = "/.well-known/openid-configuration"
KEYS: Final = "/keys"

#: Each platform's claims of a run, and the conditions of a policy that trusts just this run.
CLAIMS: Final[dict[str, dict[str, Any]]] = {
    "GITHUB": {
        "sub": "repo:octo/infra:environment:production",
        "repository": "octo/infra",
        "repository_id": "74",
        "repository_owner": "octo",
        "repository_owner_id": "65",
        "repository_visibility": "private",
        "ref": "refs/heads/main",
        "ref_type": "branch",
        "ref_protected": "true",
        "environment": "production",
        "event_name": "push",
        "workflow": "deploy",
        "workflow_ref": "octo/infra/.github/workflows/deploy.yml@refs/heads/main",
        "job_workflow_ref": "octo/infra/.github/workflows/deploy.yml@refs/heads/main",
        "sha": "4a2f1c0d9e8b7a6f5e4d3c2b1a0f9e8d7c6b5a49",
        "run_id": "1234567890",
        "run_attempt": "1",
        "runner_environment": "github-hosted",
        "actor": "ada",
    },
    "GITLAB": {
        "sub": "project_path:octo/infra:ref_type:branch:ref:main",
        "project_id": "22",
        "project_path": "octo/infra",
        "namespace_id": "72",
        "namespace_path": "octo",
        "job_project_id": "22",
        "ref": "main",
        "ref_type": "branch",
        "ref_protected": "true",
        "environment": "production",
        "environment_protected": "true",
        "pipeline_source": "push",
        "pipeline_id": "574",
        "job_id": "302",
        "sha": "714a629c0b401fdce83e847fc9589983fc6f46bc",
        "user_login": "ada",
    },
    "KUBERNETES": {
        "sub": "system:serviceaccount:ci:deployer",
        "kubernetes.io": {
            "namespace": "ci",
            "pod": {"name": "deployer-7d4", "uid": "9b1c0a62-4c10-4b0e-9b3c-2f7a1f6b8c11"},
            "serviceaccount": {
                "name": "deployer", "uid": "fd0f5ed5-31f0-4f5f-8a4e-6d27a4a9c0d2",
            },
        },
    },
    "BUILDKITE": {
        "sub": "organization:octo:pipeline:infra:ref:refs/heads/main:commit:b5ffe3a:step:apply",
        "organization_slug": "octo",
        "organization_id": "0184990a-477b-4fa8-9968-496074483cee",
        "pipeline_slug": "infra",
        "pipeline_id": "0184990a-477b-4fa8-9968-496074483k77",
        "build_number": 17,
        "build_branch": "main",
        "build_commit": "b5ffe3aeea51cec6c41aef16e45ee6bce47d8810",
        "step_key": "apply",
        "job_id": "0184990a-4782-42b5-afc1-16715b10b8ff",
    },
}  # fmt: skip
_ACCOUNT: Final = "/kubernetes.io/serviceaccount"
CONDITIONS: Final[dict[str, list[dict[str, Any]]]] = {
    "GITHUB": [
        {"claim": "repository_id", "equals": "74"},
        {"claim": "repository_owner_id", "equals": "65"},
        {"claim": "environment", "in": ["staging", "production"]},
    ],
    "GITLAB": [
        {"claim": "project_id", "equals": "22"},
        {"claim": "namespace_id", "equals": "72"},
        {"claim": "ref", "equals": "main"},
        {"claim": "ref_protected", "equals": "true"},
    ],
    "KUBERNETES": [
        {"claim": "/kubernetes.io/namespace", "equals": "ci"},
        {"claim": f"{_ACCOUNT}/name", "equals": "deployer"},
        {"claim": f"{_ACCOUNT}/uid", "equals": "fd0f5ed5-31f0-4f5f-8a4e-6d27a4a9c0d2"},
    ],
    "BUILDKITE": [
        {"claim": "organization_id", "equals": "0184990a-477b-4fa8-9968-496074483cee"},
        {"claim": "pipeline_id", "equals": "0184990a-477b-4fa8-9968-496074483k77"},
        {"claim": "build_branch", "equals": "main"},
        {"claim": "pipeline_slug", "glob": "in*"},
    ],
}
#: The claims that are stored with the token.
RUNS: Final[dict[str, dict[str, str]]] = {
    "GITHUB": {
        "repository": "octo/infra",
        "commit": "4a2f1c0d9e8b7a6f5e4d3c2b1a0f9e8d7c6b5a49",
        "run": "1234567890",
    },
    "GITLAB": {
        "repository": "octo/infra",
        "commit": "714a629c0b401fdce83e847fc9589983fc6f46bc",
        "run": "574",
    },
    "KUBERNETES": {"repository": "deployer", "commit": "", "run": "deployer-7d4"},
    "BUILDKITE": {
        "repository": "infra",
        "commit": "b5ffe3aeea51cec6c41aef16e45ee6bce47d8810",
        "run": "0184990a-4782-42b5-afc1-16715b10b8ff",
    },
}


class Key:
    """A signing key, and its public half in the form of a key set."""

    def __init__(self, kid: str = "one") -> None:
        self.kid = kid
        self.private = ec.generate_private_key(ec.SECP256R1())

    @property
    def public(self) -> dict[str, Any]:
        jwk = jwt.algorithms.ECAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        return {**jwk, "kid": self.kid, "use": "sig", "alg": "ES256"}


def claims_of(kind: str, url: str, **more: Any) -> dict[str, Any]:
    """Return the platform's current claims; a claim that is None is omitted."""
    now = int(dt.datetime.now(dt.UTC).timestamp())
    payload = {
        "iss": url,
        "aud": [AUDIENCE] if kind == "KUBERNETES" else AUDIENCE,
        "iat": now,
        "nbf": now,
        "exp": now + 300,
        "jti": str(uuid.uuid4()),
        **CLAIMS[kind],
        **more,
    }
    if kind == "BUILDKITE" and "jti" not in more:
        del payload["jti"]
    return {name: value for name, value in payload.items() if value is not None}


def sign(claims: dict[str, Any], key: Key, **header: Any) -> str:
    """Return the signed token."""
    return jwt.encode(claims, key.private, "ES256", {"kid": key.kid, **header})


Answer = Callable[[BaseHTTPRequestHandler], None]


class IssuerServer:
    """Serves a discovery document and keys; each path can have another response."""

    def __init__(self, directory: Path) -> None:
        certificate, key = self_signed(directory, "issuer")
        self.ca = certificate.read_text()
        self.requested: Counter[str] = Counter()
        self._key = Key()
        self.keys = [self._key]
        self._answers: dict[str, Answer] = {}
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.requested[self.path] += 1
                path = self.path.partition("?")[0]
                answers = issuer._answers
                answers.get(self.path, answers.get(path, issuer._answer))(self)

            def log_message(self, *args: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        # The handshake happens in the thread of the response, at its first read.
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def columns(self, kind: str = "GITHUB", **more: Any) -> dict[str, Any]:
        """Return the columns of the issuer's row."""
        return {
            "kind": kind,
            "url": self.url,
            "audience": AUDIENCE,
            "ca": self.ca,
            "algorithms": ["ES256"],
            **more,
        }

    def token(self, kind: str = "GITHUB", **more: Any) -> str:
        """Return a current token, signed in the platform's form."""
        return sign(claims_of(kind, self.url, **more), self.keys[0])

    def answers(self, path: str, answer: Answer) -> None:
        """Set the response of a path, with its query or with any query."""
        self._answers[path] = answer

    def reset(self) -> None:
        """Forget all requests, and restore the original responses."""
        self._answers.clear()
        self.requested.clear()
        self.keys[:] = [self._key]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        documents = {
            DISCOVERY: {"issuer": self.url, "jwks_uri": f"{self.url}{KEYS}"},
            KEYS: {"keys": [key.public for key in self.keys]},
        }
        respond(handler, json.dumps(documents[handler.path]).encode())


def respond(
    handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str
) -> None:
    """Answer with a body."""
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def issuer_server(directory: Path) -> Iterator[IssuerServer]:
    """Run an issuer."""
    server = IssuerServer(directory)
    try:
        yield server
    finally:
        server.close()
