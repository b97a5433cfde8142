"""Connections to services with states: kept open, through the proxy of the environment, bounded."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from states.moving.sources import TooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from email.message import Message
    from urllib.parse import SplitResult

#: For each wait: to connect, and for the next bytes.
_TIMEOUT_SECONDS: Final = 60
#: For a whole answer: a service may send a byte, or another interim response, again and again.
_ANSWER_SECONDS: Final = 15 * 60
#: Of an answer that is no document: a page of a list is some hundred kilobytes.
MOST_JSON_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Message
    body: bytes


class Connections:
    """A connection per origin, until this object is closed."""

    def __init__(self) -> None:
        self._open: dict[str, http.client.HTTPConnection] = {}
        weakref.finalize(self, _close_all, self._open)

    def send(
        self,
        method: str,
        address: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limit: int,
    ) -> Answer:
        """Return an answer with its body, of at most ``limit`` bytes when it is a success.

        Raises:
            TooLargeError: the body is larger.
            OSError, http.client.HTTPException: no answer came, or a part of it.
        """
        parts = urlsplit(address)
        connection = self._to(address)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            with _within(_ANSWER_SECONDS, connection) as started:
                connection.request(method, target, body, dict(headers))
                started()
                response = connection.getresponse()
                is_success = response.status in range(200, 300)
                content = _read(response, limit if is_success else MOST_JSON_BYTES)
        except BaseException:
            connection.close()
            raise
        return Answer(response.status, response.headers, content)

    def _to(self, address: str) -> http.client.HTTPConnection:
        """Return the connection to an origin; a closed connection reopens itself."""
        origin = origin_of(address)
        if origin not in self._open:
            self._open[origin] = _new_connection(urlsplit(address))
        return self._open[origin]


def origin_of(address: str) -> str:
    parts = urlsplit(address)
    port = parts.port or {"https": 443, "http": 80}[parts.scheme]
    return f"{parts.scheme}://{parts.hostname}:{port}"


@contextlib.contextmanager
def _within(seconds: float, connection: http.client.HTTPConnection) -> Iterator[Callable[[], None]]:
    """Let whatever waits for the connection fail after a while.

    The block calls the function that it gets when it has sent its request: for an answer that ends
    with the connection, http.client forgets the socket before the body is read.

    Raises:
        TimeoutError: the block took longer.
    """
    sockets: list[socket.socket | None] = []
    is_over = threading.Event()

    def break_off() -> None:
        is_over.set()
        for found in (*sockets, connection.sock):
            if found is not None:
                with contextlib.suppress(OSError):  # closed meanwhile
                    found.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, break_off)
    timer.daemon = True
    timer.start()
    try:
        yield lambda: sockets.append(connection.sock)
    finally:
        timer.cancel()
    if is_over.is_set():  # the end of the body may be that of the connection
        raise TimeoutError


def _close_all(connections: dict[str, http.client.HTTPConnection]) -> None:
    for connection in connections.values():
        connection.close()


def _new_connection(parts: SplitResult) -> http.client.HTTPConnection:
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_SECONDS)
    proxy = "" if proxy_bypass(host) else getproxies().get("https", "")
    if not proxy:
        return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_SECONDS)
    way = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    connection = http.client.HTTPSConnection(way.hostname or "", way.port, timeout=_TIMEOUT_SECONDS)
    connection.set_tunnel(host, port)
    return connection


def _read(response: http.client.HTTPResponse, limit: int) -> bytes:
    """Read a whole body.

    Raises:
        TooLargeError: it exceeds the limit, or announces to.
        http.client.HTTPException: it is shorter than announced.
    """
    promised = response.length
    if promised is not None and promised > limit:
        raise TooLargeError(promised, limit)
    body = response.read(limit + 1)
    if len(body) > limit:
        raise TooLargeError(len(body), limit)
    if promised is not None and len(body) < promised:
        raise http.client.IncompleteRead(body, promised - len(body))
    if not response.isclosed():
        response.read()  # the end of a body without a length, so that the connection can go on
    return body
