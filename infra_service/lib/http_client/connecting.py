"""Prevent SSRF: connect to user-supplied URLs only at allowed addresses, and within a deadline.

A name is resolved once, and the connection uses the address that was checked: a different result of
a second look-up (DNS rebinding) has no effect.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import queue
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Collection, Iterator, Mapping
    from urllib.parse import SplitResult

    from infra_service.lib.http_client.addresses import Address

#: Of an answer's status line and headers.
_MAX_HEADER_BYTES: Final = 16 * 1024
_PORTS: Final = {"https": 443, "http": 80}


class FetchError(Exception):
    """A failed request; its message gives the reason."""


class Deadline:
    """The moment by which everything must be done."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        """Return the remaining seconds.

        Raises:
            FetchError: the deadline has passed.
        """
        left = self._at - time.monotonic()
        if left <= 0:
            raise FetchError("the answer took too long")
        return left


def parse_url(url: str, schemes: Collection[str] = ("https",)) -> SplitResult:
    """Return the parts of a URL with a host and without a user.

    Raises:
        FetchError: the URL is invalid.
    """
    if not url.isascii() or not url.isprintable() or " " in url:
        raise FetchError("this is no address")
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_sound = False
    if not is_sound or "@" in parts.netloc:
        raise FetchError(f"only {' and '.join(schemes)} addresses without a user are asked")
    return parts


@contextmanager
def request(
    method: str,
    parts: SplitResult,
    headers: Mapping[str, str],
    body: bytes = b"",
    *,
    deadline: Deadline,
    check: Callable[[Address], None],
    context: ssl.SSLContext | None,
    most: int,
) -> Iterator[http.client.HTTPResponse]:
    """Send a request over a connection of its own, and yield the answer: ``most`` bytes and a head.

    ``check`` refuses an address by a FetchError. Without ``context`` there is no TLS.

    Raises:
        FetchError: the address cannot be asked, or the answer is too long or too late.
        OSError, http.client.HTTPException: something else went wrong on the way.
    """
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = {"Host": parts.netloc, **headers, "Connection": "close"}
    head = f"{method} {target} HTTP/1.1\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    host = parts.hostname or ""
    with _connect(host, parts.port or _PORTS[parts.scheme], deadline, check) as plain:
        plain.settimeout(deadline.left())
        connection = context.wrap_socket(plain, server_hostname=host) if context else plain
        with connection:
            connection.settimeout(deadline.left())
            connection.sendall(head.encode("ascii") + b"\r\n" + body)
            source: Any = _Limited(connection, deadline, most + _MAX_HEADER_BYTES)
            response = http.client.HTTPResponse(source, method=method)
            response.begin()
            yield response


def _connect(
    host: str, port: int, deadline: Deadline, check: Callable[[Address], None]
) -> socket.socket:
    """Return a connection to the first address of the host that accepts it.

    ``check`` rejects an address by a FetchError; then no address of the host is tried.

    Raises:
        FetchError: the name has no address or a rejected address, or no address accepts the
            connection.
    """
    failure: OSError | None = None
    for family, address in _checked(host, port, deadline, check):
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(deadline.left())
            connection.connect(address)
        except OSError as error:
            connection.close()
            failure = error
        except FetchError:
            connection.close()
            raise
        else:
            return connection
    raise FetchError(f"nobody listens there: {failure}")


def _checked(
    host: str, port: int, deadline: Deadline, check: Callable[[Address], None]
) -> list[tuple[Any, Any]]:
    found = []
    for family, _type, _protocol, _name, address in _resolve(host, port, deadline):
        check(ipaddress.ip_address(address[0].partition("%")[0]))
        found.append((family, address))
    return found


def _resolve(host: str, port: int, deadline: Deadline) -> Any:
    """Resolve a name in a thread, because the system's resolver has no timeout."""
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True, name="resolving").start()
    try:
        answer = answers.get(timeout=deadline.left())
    except queue.Empty:
        raise FetchError("the name was not resolved in time") from None
    if isinstance(answer, Exception):
        raise FetchError(f"the name cannot be resolved: {answer}")
    return answer


class _Limited(io.RawIOBase):
    """The bytes of a connection, up to a limit and a deadline."""

    def __init__(self, connection: socket.socket, deadline: Deadline, most: int) -> None:
        self._connection, self._deadline = connection, deadline
        self._most = self._left = most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(self._deadline.left())
        received = self._connection.recv_into(buffer)
        self._left -= received
        if self._left < 0:
            raise FetchError(f"the answer is longer than {self._most} bytes")
        return received

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the reader that http.client asks a socket for."""
        return io.BufferedReader(self)
