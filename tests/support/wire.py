"""A relay to PostgreSQL with some milliseconds of latency, which counts round trips.

It runs in threads and reads only the types of the protocol's messages. A round trip is a request
after all earlier requests were answered: a ``Query``, or a ``Sync`` or ``Flush`` with preceding
messages. A pipeline counts once. Answers arrive ``seconds`` late, however many are in transit. The
opening of a connection is not counted: many requests share it.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

#: Requests for encryption, sent before a connection is opened; the relay must read the messages.
_ENCRYPTION = (80877103, 80877104)
#: Client messages without an answer of their own: Parse, Bind, Describe, Execute, Close.
_QUEUED = b"PBDEC"


class _Messages:
    """The types of the messages in a stream that arrives in pieces."""

    def __init__(self) -> None:
        self._skip, self._rest = 0, b""

    def types(self, piece: bytes) -> bytes:
        """Return the types of the messages that begin in this piece."""
        piece, types, place = self._rest + piece, bytearray(), self._skip
        while place + 5 <= len(piece):
            types.append(piece[place])
            place += 1 + int.from_bytes(piece[place + 1 : place + 5])
        self._rest = piece[place:]
        self._skip = max(0, place - len(piece))
        return bytes(types)


class _Connection:
    """A client's connection and the server's, each read by its own thread."""

    def __init__(self, wire: Wire, client: socket.socket, server: socket.socket) -> None:
        self.wire, self.client, self.server = wire, client, server
        self._requested, self._unanswered = False, 0
        self._lock = threading.Lock()
        self._late: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

    def start(self) -> None:
        for work in (self._questions, self._answers, self._deliveries):
            threading.Thread(target=self._run, args=(work,), daemon=True).start()

    def _run(self, work: object) -> None:
        assert callable(work)
        with contextlib.suppress(OSError):
            work()

    def end(self) -> None:
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _questions(self) -> None:
        self._open()
        messages = _Messages()
        while piece := self.client.recv(1 << 16):
            for kind in messages.types(piece):
                self._question(kind)
            self.server.sendall(piece)
        self.server.shutdown(socket.SHUT_WR)

    def _open(self) -> None:
        """Forward the messages without a type: the first messages."""
        while True:
            length = self._exactly(4)
            (size,) = struct.unpack("!I", length)
            first = self._exactly(size - 4)
            if struct.unpack("!I", first[:4])[0] not in _ENCRYPTION:
                self.server.sendall(length + first)
                return
            self.client.sendall(b"N")

    def _exactly(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            piece = self.client.recv(size - len(received))
            if not piece:
                raise ConnectionError
            received += piece
        return received

    def _question(self, kind: int) -> None:
        with self._lock:
            if kind in _QUEUED:
                self._requested = True
                return
            if kind not in b"QSH":
                return
            if self._unanswered == 0 and (kind in b"Q" or self._requested):
                self.wire.count()
            self._requested = False
            self._unanswered += kind in b"QS"

    def _answers(self) -> None:
        while piece := self.server.recv(1 << 16):
            self._late.put((time.monotonic() + self.wire.seconds, piece))
        self._late.put((time.monotonic() + self.wire.seconds, b""))

    def _deliveries(self) -> None:
        messages = _Messages()
        while True:
            due, piece = self._late.get()
            if (early := due - time.monotonic()) > 0:
                time.sleep(early)
            if not piece:
                self.end()
                return
            # ReadyForQuery; the first ends the opening, which is not counted.
            answered = messages.types(piece).count(b"Z")
            with self._lock:
                self._unanswered = max(0, self._unanswered - answered)
            self.client.sendall(piece)


class Wire:
    """The relay. ``trips`` is the number of round trips so far."""

    def __init__(self, host: str, port: int, seconds: float = 0.0) -> None:
        self.seconds, self.trips = seconds, 0
        self._to = (host, port)
        self._lock = threading.Lock()
        self._connections: list[_Connection] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def through(self, url: str) -> str:
        """Return the address of a database through the relay."""
        parts = urlsplit(url)
        login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
        return urlunsplit(parts._replace(netloc=f"{login}127.0.0.1:{self.port}"))

    def count(self) -> None:
        with self._lock:
            self.trips += 1

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            connection.end()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._to)
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection = _Connection(self, client, server)
                self._connections.append(connection)
                connection.start()


@contextlib.contextmanager
def wire_to(url: str, seconds: float = 0.0) -> Iterator[Wire]:
    """Run a relay to the server at this address during the block."""
    parts = urlsplit(url)
    wire = Wire(parts.hostname or "127.0.0.1", parts.port or 5432, seconds)
    try:
        yield wire
    finally:
        wire.close()
