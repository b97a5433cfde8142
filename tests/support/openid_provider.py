"""A provider of OpenID Connect on loopback, as strict as real providers."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

Claims = dict[str, Any]


class Provider:
    """A provider with a single client and a logged-in person, ``person``, with their claims.

    ``change`` may falsify the ID token's claims, and ``sign`` its signature.
    """

    client_id, client_secret = "infra-service", "secret of the client"

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.redirect_uris: set[str] = set()
        self.post_logout_redirect_uris: set[str] = set()
        self.reset()
        self._codes: dict[str, dict[str, str]] = {}
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.provider = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def reset(self) -> None:
        self.person: Claims = {"sub": "1"}
        self.change: Callable[[Claims], Claims] = lambda claims: claims
        self.sign: Callable[[Claims], str] = self.signed
        self.discovery: Claims = {}
        self.is_away = False
        self.requested: list[str] = []
        self.logouts: list[dict[str, str]] = []

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.05)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def signed(self, claims: Claims) -> str:
        return jwt.encode(claims, self.key, "ES256", headers={"kid": "one"})

    def configuration(self) -> Claims:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "scopes_supported": ["openid", "profile", "email", "groups"],
            "response_types_supported": ["code"],
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
            **self.discovery,
        }

    def keys(self) -> Claims:
        public = ECAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**public, "kid": "one", "use": "sig", "alg": "ES256"}]}

    def authorize(self, given: dict[str, str]) -> str:
        """Return the address to which the browser is redirected.

        Raises:
            PermissionError: the client's request is invalid.
        """
        expect(given.get("client_id") == self.client_id, "unknown client")
        expect(given.get("redirect_uri") in self.redirect_uris, "unknown redirect_uri")
        expect(given.get("response_type") == "code", "unsupported_response_type")
        expect("openid" in given.get("scope", "").split(), "invalid_scope")
        expect(given.get("code_challenge_method") == "S256", "PKCE is required")
        expect(len(given.get("code_challenge", "")) == 43, "PKCE is required")
        expect(
            bool(given.get("nonce")) and bool(given.get("state")), "nonce and state are required"
        )
        code = secrets.token_urlsafe(16)
        self._codes[code] = given
        return f"{given['redirect_uri']}?{urlencode({'code': code, 'state': given['state']})}"

    def end_session(self, given: dict[str, str]) -> str:
        """Return the address to which the browser is redirected after the logout.

        Raises:
            PermissionError: the client's request is invalid.
        """
        expect(given.get("client_id") == self.client_id, "unknown client")
        after = given.get("post_logout_redirect_uri", "")
        expect(after in self.post_logout_redirect_uris, "unknown post_logout_redirect_uri")
        if "id_token_hint" in given:
            jwt.decode(
                given["id_token_hint"],
                self.key.public_key(),
                ["ES256"],
                audience=self.client_id,
                issuer=self.url,
                options={"verify_exp": False},
            )
        self.logouts.append(given)
        return after

    def tokens(self, given: dict[str, str]) -> Claims:
        """Return the tokens for a code.

        Raises:
            PermissionError: the code is another client's, used or expired.
        """
        expect(given.get("grant_type") == "authorization_code", "unsupported_grant_type")
        secret = (given.get("client_id"), given.get("client_secret"))
        expect(secret == (self.client_id, self.client_secret), "invalid_client")
        authorization = self._codes.pop(given.get("code", ""), {})
        expect(authorization.get("redirect_uri") == given.get("redirect_uri"), "invalid_grant")
        verifier = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).decode().rstrip("=")
        expect(authorization.get("code_challenge") == challenge, "invalid_grant")
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": self.client_id,
            "iat": now,
            "exp": now + 300,
            "nonce": authorization["nonce"],
            **self.person,
        }
        return {
            "access_token": secrets.token_urlsafe(16),
            "token_type": "Bearer",
            "expires_in": 300,
            "id_token": self.sign(self.change(claims)),
        }


def expect(holds: bool, error: str) -> None:
    if not holds:
        raise PermissionError(error)


@contextmanager
def openid_provider() -> Iterator[Provider]:
    """Run a provider during the block."""
    provider = Provider()
    thread = threading.Thread(target=provider.serve)
    thread.start()
    try:
        yield provider
    finally:
        provider.close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        provider, parts = self.server.provider, urlsplit(self.path)
        provider.requested.append(parts.path)
        documents = {
            "/.well-known/openid-configuration": provider.configuration,
            "/keys": provider.keys,
        }
        if provider.is_away:
            self.answer(503, {})
        elif parts.path == "/authorize":
            self.redirect(self.server.provider.authorize, parts.query)
        elif parts.path == "/logout":
            self.redirect(self.server.provider.end_session, parts.query)
        elif parts.path in documents:
            self.answer(200, documents[parts.path]())
        else:
            self.answer(404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        try:
            self.answer(200, self.server.provider.tokens(_single(body)))
        except PermissionError as error:
            self.answer(400, {"error": str(error)})

    def redirect(self, answer: Callable[[dict[str, str]], str], query: str) -> None:
        try:
            location = answer(_single(query))
        except PermissionError as error:
            self.answer(400, {"error": str(error)})
            return
        self.send_response(302)
        self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def answer(self, status: int, body: Claims) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    provider: Provider


def _single(query: str) -> dict[str, str]:
    found = parse_qs(query, strict_parsing=bool(query))
    expect(all(len(values) == 1 for values in found.values()), "a parameter comes twice")
    return {name: values[0] for name, values in found.items()}
