"""A proxy between an agent and the service that forwards requests, or fails on purpose."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.server import LiveServer

#: Answers a request, which it may forward; its argument is the body of the request.
Action = Callable[["Between", BaseHTTPRequestHandler, bytes], None]


class Between:
    """A proxy on loopback. `actions` handle the next reports, and `exchanges` the next exchanges.

    It forwards all other requests.
    """

    def __init__(self, server: LiveServer, certificate: tuple[Path, Path] | None = None) -> None:
        self.server = server
        self.actions: deque[Action] = deque()
        self.exchanges: deque[Action] = deque()
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.hang_up = threading.Event()
        self._scheme = "http" if certificate is None else "https"
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None  # type: ignore[method-assign]
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._http.socket = context.wrap_socket(
                self._http.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._http.server_address[1]}"

    def reports(self) -> list[tuple[str, str, dict[str, str], bytes]]:
        """Return the reports that came, with method, path, headers and body."""
        return [request for request in self.requests if request[1].endswith("/workloads")]

    def __enter__(self) -> Between:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def hand_on(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        """Ask the service; return its answer."""
        kept = {"Content-Type", "Content-Encoding", "Authorization"}
        headers = {name: value for name, value in handler.headers.items() if name in kept}
        answer = self.server.request(handler.command, handler.path, body, headers=headers)
        return answer.status, answer.body

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        between = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = (self.command, self.path, dict(self.headers), body)
                between.requests.append(request)
                queues = {"token": between.exchanges, "workloads": between.actions}
                queue = queues.get(self.path.rpartition("/")[2])
                action = queue.popleft() if queue else handed_on
                action(between, self, body)

            do_PUT = do_PATCH = do_POST  # noqa: N815 - names of the library

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def handed_on(between: Between, handler: BaseHTTPRequestHandler, body: bytes) -> None:
    status, answer = between.hand_on(handler, body)
    answering(status, answer)(between, handler, body)


def answering(status: int, body: bytes = b"", **headers: str) -> Action:
    """Answer without the service."""

    def answer(_between: Between, handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        with contextlib.suppress(OSError):
            handler.wfile.write(body)

    return answer


def lost(between: Between, handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """Let the service apply it, and lose the answer."""
    between.hand_on(handler, body)
    handler.close_connection = True


def unheard(_between: Between, handler: BaseHTTPRequestHandler, _body: bytes) -> None:
    """Lose the request."""
    handler.close_connection = True


def halved(between: Between, handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """Let the service apply it, and lose half of the answer."""
    status, answer = between.hand_on(handler, body)
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(answer)))
    handler.end_headers()
    handler.wfile.write(answer[: len(answer) // 2])
