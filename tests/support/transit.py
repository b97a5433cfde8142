"""The parts of the transit engine of Vault and OpenBao that unwrap a key, with real encryption.

Statuses and conditions are those of OpenBao's ``builtin/logical/transit``.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import secrets
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_ROUTES = ("decrypt", "encrypt", "keys")


class Transit:
    """A server with the key ``infra-service`` of an engine at ``mount``, for one token."""

    def __init__(self, mount: str = "transit", namespace: str = "") -> None:
        self.mount, self.namespace = mount, namespace
        self.token = f"hvs.{secrets.token_urlsafe(24)}"
        self.keys = {"infra-service": [AESGCM(secrets.token_bytes(32))]}
        self.url = ""
        #: Statuses of the next responses, in place of the server's own.
        self.failures: list[int] = []
        self.requests = 0

    def rotate(self, name: str = "infra-service") -> None:
        """Add a version of the key; older ciphertexts still decrypt."""
        self.keys[name].append(AESGCM(secrets.token_bytes(32)))

    def wrap(self, plaintext: str, name: str = "infra-service") -> str:
        """Return the ciphertext of a base64 plaintext."""
        nonce = secrets.token_bytes(12)
        sealed = self.keys[name][-1].encrypt(nonce, base64.b64decode(plaintext), None)
        return f"vault:v{len(self.keys[name])}:{base64.b64encode(nonce + sealed).decode()}"

    def environment(self, **settings: str) -> dict[str, str]:
        """Return the settings of a service that uses this server."""
        found = {"VAULT_ADDR": self.url, "VAULT_TOKEN": self.token, **settings}
        return found if self.mount == "transit" else {
            **found, "VAULT_TRANSIT_KEY": f"{self.mount}/infra-service",
        }  # fmt: skip

    def answer(self, path: str, headers: Any, body: bytes) -> tuple[int, Any]:
        """Return the status and the JSON of the response to a POST."""
        self.requests += 1
        if self.failures:
            status = self.failures.pop(0)
            return status, {"errors": ["Vault is sealed"] if status == 503 else []}
        try:
            given = json.loads(body or b"{}")
        except ValueError:
            return 400, {"errors": ["error parsing JSON"]}
        token = headers.get("X-Vault-Token", "")
        if token != self.token or headers.get("X-Vault-Namespace", "") != self.namespace:
            return 403, {"errors": ["permission denied"]}
        parts = path.removeprefix(f"/v1/{self.mount}/").split("/")
        if not path.startswith(f"/v1/{self.mount}/") or len(parts) != 2 or parts[0] not in _ROUTES:
            return 404, {"errors": [f'no handler for route "{path[4:]}". route entry not found.']}
        try:
            done = self._use(*parts, given)
        except ValueError as error:
            return 400, {"errors": [str(error)]}
        return 200, {"request_id": "5f", "lease_id": "", "renewable": False, "data": done}

    def _use(self, operation: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
        if operation == "keys":
            self.keys.setdefault(name, [AESGCM(secrets.token_bytes(32))])
            return {"name": name, "type": "aes256-gcm96"}
        field = "ciphertext" if operation == "decrypt" else "plaintext"
        if not given.get(field):
            raise ValueError(f"missing {field} to {operation}")
        if name not in self.keys:
            raise ValueError("encryption key not found")
        if operation == "encrypt":
            return {"ciphertext": self.wrap(given[field], name), "key_version": len(self.keys)}
        prefix, _, version_and_rest = given[field].partition(":v")
        version, _, encoded = version_and_rest.partition(":")
        if prefix != "vault" or not version.isdecimal():
            raise ValueError("invalid ciphertext: no prefix")
        if not 0 < int(version) <= len(self.keys[name]):
            raise ValueError("invalid ciphertext: version is too new")
        try:
            payload = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            raise ValueError("invalid ciphertext: could not decode base64") from None
        try:
            plain = self.keys[name][int(version) - 1].decrypt(payload[:12], payload[12:], None)
        except (InvalidTag, ValueError):
            raise ValueError("cipher: message authentication failed") from None
        return {"plaintext": base64.b64encode(plain).decode()}


@contextlib.contextmanager
def running(transit: Transit, certificate: tuple[Path, Path] | None = None) -> Iterator[Transit]:
    """Serve on a free loopback port during the block, with TLS if there is a certificate."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            status, answer = transit.answer(self.path, self.headers, body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    transit.url = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield transit
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
