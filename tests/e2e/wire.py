"""Requests written byte by byte."""

from __future__ import annotations

import http.client
import io
import socket
from collections.abc import Iterable
from types import TracebackType

from tests.e2e.backend import Backend
from tests.support.server import Answer


class _Received(io.BufferedReader):
    """The bytes from the server. The end of an answer does not close it: another may follow."""

    def close(self) -> None: ...


class Wire:
    """A connection to the server, on which a test writes any bytes."""

    def __init__(self, backend: Backend, timeout: float = 20) -> None:
        self.backend = backend
        self.socket = socket.create_connection(("127.0.0.1", backend.server.port), timeout)
        self.received = _Received(socket.SocketIO(self.socket, "r"))

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def head(self, method: str, suffix: str = "", **headers: object) -> None:
        """Send the request line and the headers; ``Content_Length=5`` is Content-Length."""
        lines = [f"{method} {self.backend.path}{suffix} HTTP/1.1", "Host: localhost"]
        lines.append(f"Authorization: Bearer {self.backend.token}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self.socket.sendall(part)

    def chunks(self, parts: Iterable[bytes], end: bytes = b"0\r\n\r\n") -> None:
        """Send each part as a chunk, and then the end."""
        for part in parts:
            self.send(b"%x\r\n" % len(part), part, b"\r\n")
        self.send(end)

    def end_of_input(self) -> None:
        """Shut down the sending direction, and continue to read."""
        self.socket.shutdown(socket.SHUT_WR)

    def line(self) -> bytes:
        """Read one line, such as that of ``100 Continue``."""
        found = self.received.readline()
        assert found.endswith(b"\r\n"), found
        return found

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the file from which http.client reads an answer."""
        return self.received

    def answer(self) -> Answer:
        """Read an answer."""
        response = http.client.HTTPResponse(self)
        response.begin()
        return Answer(response.status, dict(response.getheaders()), response.read())

    def is_closed(self) -> bool:
        """Return whether the server has closed the connection after its answers."""
        try:
            return self.received.read(1) == b""
        except ConnectionResetError:
            return True
