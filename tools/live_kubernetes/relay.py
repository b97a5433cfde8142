"""A plain-text relay in front of the API server, which records exchanges and can freeze.

A frozen relay silently keeps its connections open, like a firewall that has dropped their state.
The relay still serves new connections.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import urllib3

from tests.apiserver.requests import Exchange, signature

_HEADERS = ("Accept", "Accept-Encoding", "Authorization")


class Relay:
    """A relay to an API server. `seen` contains the exchanges by signature."""

    def __init__(self, url: str, certificate: Path) -> None:
        self.seen: dict[str, Exchange] = {}
        self._url = url
        self._pool = urllib3.PoolManager(ca_certs=str(certificate), retries=False, maxsize=20)
        self._generation = 0
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def start(self) -> None:
        threading.Thread(target=self._http.serve_forever, args=(0.1,), daemon=True).start()

    def freeze(self) -> None:
        """Freeze all current connections silently."""
        self._generation += 1

    def close(self) -> None:
        self._closed.set()
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        relay = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                self.generation = relay._generation

            def do_GET(self) -> None:
                try:
                    relay.forward(self, self.generation)
                except (OSError, urllib3.exceptions.HTTPError):
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def forward(self, handler: BaseHTTPRequestHandler, generation: int) -> None:
        headers = {name: handler.headers[name] for name in _HEADERS if handler.headers[name]}
        answer = self._pool.request(
            "GET",
            # Request pages with a single item, so that every list continues on another page.
            f"{self._url}{handler.path}".replace("limit=500", "limit=1"),
            headers=headers,
            preload_content=False,
            timeout=urllib3.Timeout(connect=10, read=300),
        )
        handler.send_response(answer.status)
        for name in ("Content-Type", "Content-Encoding", "Retry-After", "Date"):
            if name in answer.headers:
                handler.send_header(name, answer.headers[name])
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        self._record(handler.path, headers, answer, b"")
        start = b""
        for block in answer.stream(65536, decode_content=False):
            if generation != self._generation:
                self._closed.wait(600)
                return
            if len(start) < 200_000:
                start += block
                self._record(handler.path, headers, answer, start)
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(block), block))
            handler.wfile.flush()
        handler.wfile.write(b"0\r\n\r\n")

    def _record(self, path: str, headers: dict[str, str], answer: Any, start: bytes) -> None:
        url = urlsplit(path)
        requested = signature(url.path, dict(parse_qsl(url.query)), headers)
        encoded = answer.headers.get("Content-Encoding", "") != ""
        found = Exchange(
            status=answer.status,
            content_type=answer.headers.get("Content-Type", "").partition(";")[0],
            says="" if encoded else text(start),
        )
        with self._lock:
            before = self.seen.get(requested)
            if before is None or (found.says and not before.says):
                self.seen[requested] = found


def text(body: bytes) -> str:
    """Return the kind of the object in a response, or in the first event of a watch."""
    first = body.partition(b"\n{")[0]
    try:
        value = json.loads(first)
    except ValueError:
        # Only the beginning of a long list is available.
        kind = body.partition(b'"kind":"')[2].partition(b'"')[0]
        return kind.decode(errors="replace")[:60]
    event = value.get("object", value)
    return str(event.get("kind", ""))
