"""A receiver of webhooks: a real HTTP server on loopback with configurable responses."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Received:
    """A request as received."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message_id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def payload(self) -> Any:
        return json.loads(self.body)

    @property
    def type(self) -> str:
        kind: str = self.payload["type"]
        return kind


class Receiver:
    """The received requests, and the responses to the next requests."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/hook"
        self.received: list[Received] = []
        self.answer: Callable[[BaseHTTPRequestHandler], None] = answers(204)

    def types(self) -> list[str]:
        return [one.type for one in self.received]


def answers(status: int, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """Return how a request is answered with a status and headers, and no body."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Receive on loopback until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.received.append(Received(self.path, headers, body))
            receiver.answer(self)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_: Any) -> None:
            """Ignore disconnected clients, which some tests expect."""

    with Server(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(server.server_address[1])
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield receiver
        finally:
            server.shutdown()
