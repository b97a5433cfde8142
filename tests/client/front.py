"""A server in front of the service that answers the next requests itself, as a test prescribes."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.server import LiveServer

#: Sends an answer to a request on a connection.
Act = Callable[[socket.socket], None]


class Front(socketserver.ThreadingTCPServer):
    """A server on a free loopback port.

    ``requests`` are the heads and bodies of all requests. ``script`` are the answers to the next
    requests; all further requests reach the service.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, service: LiveServer | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service = service
        self.requests: list[bytes] = []
        self.script: deque[Act] = deque()
        self.ended = threading.Event()
        self.arrived = threading.Event()
        self.certificate: tuple[Path, Path] | None = None

    @property
    def url(self) -> str:
        scheme = "https" if self.certificate else "http"
        return f"{scheme}://127.0.0.1:{self.server_address[1]}"

    @property
    def lines(self) -> list[str]:
        """Return the methods and paths of all requests, without queries."""
        heads = [request.split(b" ")[:2] for request in self.requests]
        return [f"{method.decode()} {path.decode().partition('?')[0]}" for method, path in heads]

    def get_request(self) -> tuple[socket.socket, object]:
        connection, address = super().get_request()
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            connection = context.wrap_socket(connection, server_side=True)
        return connection, address

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that closed the connection."""


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        front = self.server
        assert isinstance(front, Front)
        if not (request := _read_request(self.request)):
            return
        front.requests.append(request)
        act = front.script.popleft() if front.script else None
        front.arrived.set()
        (act or passed(front))(self.request)


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (block := connection.recv(65536)):
            return b""
        data += block
    head, _, body = data.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    while len(body) < int(fields.get(b"content-length", b"0")):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def forward(service: LiveServer, request: bytes) -> bytes:
    """Send a request to the service; return its answer, which ends the connection."""
    with socket.create_connection(("127.0.0.1", service.port)) as behind:
        behind.sendall(request)
        answer = b""
        while block := behind.recv(65536):
            answer += block
    return answer


def answer(status: str, body: str = "", **headers: object) -> Act:
    """Answer with this status and body."""
    fields: dict[str, object] = {"Content_Length": len(body.encode()), "Connection": "close"}
    fields |= headers
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    content = f"HTTP/1.1 {status}\r\n{head}\r\n{body}".encode()
    return lambda connection: connection.sendall(content)


def passed(front: Front) -> Act:
    """Pass the request to the service."""

    def act(connection: socket.socket) -> None:
        assert front.service is not None
        connection.sendall(forward(front.service, front.requests[-1]))

    return act


def lost_after(front: Front) -> Act:
    """Let the service process the request, and lose its answer."""

    def act(_connection: socket.socket) -> None:
        assert front.service is not None
        forward(front.service, front.requests[-1])

    return act


def silent(front: Front) -> Act:
    """Accept the request and never answer."""

    def act(_connection: socket.socket) -> None:
        front.ended.wait()

    return act


def dripping(front: Front) -> Act:
    """Answer a byte every 0.1 s, for ever."""

    def act(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not front.ended.wait(0.1):
            connection.sendall(b" ")

    return act


@contextlib.contextmanager
def running_front(
    service: LiveServer | None = None, certificate: tuple[Path, Path] | None = None
) -> Iterator[Front]:
    with Front(service) as front:
        front.certificate = certificate
        thread = threading.Thread(target=front.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield front
        finally:
            front.ended.set()
            front.shutdown()
            thread.join()
