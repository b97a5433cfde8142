"""An account that is known by a client certificate, which ends and is renewed."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.certificates import self_signed
from workloads.collector import connect
from workloads.collector.errors import RefusedError

PATH = "/api/v1/namespaces/kube-system"


class CertificateServer:
    """An API server that accepts a single name at a time, as after older certificates expired."""

    def __init__(self, directory: Path) -> None:
        self.known = "first"
        self.client_names: list[str] = []
        self.directory = directory
        self.authority, key = self_signed(directory, "server")
        self.clients = {name: self_signed(directory, name) for name in ("first", "second")}
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.authority, key)
        context.verify_mode = ssl.CERT_OPTIONAL
        for certificate, _key in self.clients.values():
            context.load_verify_locations(certificate)
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.http.daemon_threads = True
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)

    def kubeconfig(self, name: str, *, inline: bool) -> str:
        """Write a kubeconfig with the certificate of this name, always in the same place."""
        user = {}
        for part, source in zip(("certificate", "key"), self.clients[name], strict=True):
            if inline:
                user[f"client-{part}-data"] = base64.b64encode(source.read_bytes()).decode()
            else:
                place = self.directory / f"current.{part}"
                place.write_bytes(source.read_bytes())
                user[f"client-{part}"] = str(place)
        url = f"https://127.0.0.1:{self.http.server_address[1]}"
        cluster = {"server": url, "certificate-authority": str(self.authority)}
        path = self.directory / "kubeconfig"
        path.write_text(json.dumps({
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }))  # fmt: skip
        return str(path)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                assert isinstance(self.connection, ssl.SSLSocket)
                ((_, name),) = dict(self.connection.getpeercert() or {})["subject"][0]  # type: ignore[misc]
                server.client_names.append(str(name))
                self.send_response(200 if name == server.known else 401)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CertificateServer]:
    server = CertificateServer(tmp_path)
    threading.Thread(target=server.http.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.mark.parametrize("inline", [True, False])
def test_replaced_client_certificate_is_loaded(server: CertificateServer, inline: bool) -> None:
    client = connect.from_kubeconfig(server.kubeconfig("first", inline=inline), "c")
    assert client.get(PATH) == {}

    server.known = "second"
    with pytest.raises(RefusedError, match="401"):
        client.get(PATH)

    server.kubeconfig("second", inline=inline)
    assert client.get(PATH) == {}
    assert server.client_names[-2:] == ["first", "second"]
    client.close()
