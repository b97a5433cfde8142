"""An HTTP server on loopback that answers like a remote API and records the requests."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Request:
    """A request."""

    method: str
    path: str  # as it was sent, so that %2F is not a slash
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes
    port: int  # the client's, identifies the connection

    @property
    def token(self) -> str:
        return self.headers.get("Authorization", "").removeprefix("Bearer ")

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """A reply; anything except text is sent as JSON."""

    status: int
    content: Any = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        content = self.content if isinstance(self.content, str) else json.dumps(self.content)
        return content.encode()


class Replay:
    """The server. Each reply in ``first`` is sent once, before all other replies."""

    def __init__(
        self, answer: Callable[[Request], Reply], tls: ssl.SSLContext | None = None
    ) -> None:
        self.requests: list[Request] = []
        self.first: list[Reply] = []
        self._answer = answer
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Replay:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        return self.first.pop(0) if self.first else self._answer(request)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        replay = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = {name: values[0] for name, values in _parameters(parts.query).items()}
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                port = self.client_address[1]
                request = Request(self.command, parts.path, query, dict(self.headers), body, port)
                reply = replay.reply(request)
                self.send_response(reply.status)
                length = str(len(reply.body))
                if "Transfer-Encoding" not in reply.headers:
                    self.send_header("Content-Length", reply.headers.get("Content-Length", length))
                for name in reply.headers.keys() - {"Content-Length"}:
                    self.send_header(name, reply.headers[name])
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(reply.body)
                # Closing the connection truncates a body shorter than its Content-Length.
                self.close_connection |= reply.headers.get("Content-Length", length) != length

            do_HEAD = do_POST = do_GET  # noqa: N815 - as http.server has it

            def log_message(self, *_: object) -> None: ...

        return Handler


def _parameters(query: str) -> dict[str, list[str]]:
    return parse_qs(query, keep_blank_values=True)
