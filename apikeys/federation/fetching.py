"""What is read from an issuer's addresses: over HTTPS, little, soon or not at all, and not inside.

Whoever registers an issuer names an address that this service asks, so it must not be led to what
only this service can reach. A name is resolved once and the connection goes to the address that was
looked at: a name that answers otherwise the second time is not asked a second time.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import json
import queue
import socket
import ssl
import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django.conf import settings

if TYPE_CHECKING:
    from urllib.parse import SplitResult

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address

#: Of an answer's body; the largest key sets of the platforms have 10 KB.
MAX_BYTES: Final = 64 * 1024
#: For all of it: names, connections, handshakes and answers.
SECONDS: Final = 5.0
_MAX_HEADER_BYTES: Final = 16 * 1024
_HTTPS: Final = 443
#: IPv4 addresses within IPv6, for networks that have no other (RFC 6052).
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


class FetchError(Exception):
    """A sentence that says why there was no answer."""


class Deadline:
    """The moment by which everything must be done."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left.

        Raises:
            FetchError: there are none.
        """
        left = self._at - time.monotonic()
        if left <= 0:
            raise FetchError("the answer took too long")
        return left


def fetch_json(url: str, ca: str, deadline: Deadline) -> Any:
    """Return the JSON at an address whose certificate these authorities, or the system's, signed.

    Raises:
        FetchError: there is none, or not in time.
    """
    try:
        return json.loads(_fetch(url, ca, deadline))
    except (OSError, http.client.HTTPException) as error:
        raise FetchError(f"{url} cannot be read: {error!r}") from error
    except (ValueError, RecursionError) as error:
        raise FetchError(f"{url} does not answer with JSON") from error
    except FetchError as error:
        raise FetchError(f"{url}: {error}") from error


def _fetch(url: str, ca: str, deadline: Deadline) -> bytes:
    parts = _parts(url)
    host = parts.hostname or ""
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = (
        f"GET {target} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Accept: application/json",
        "Accept-Encoding: identity",
        "User-Agent: infra-service",
        "Connection: close",
        "\r\n",
    )
    context = _context(ca)
    with _connect(host, parts.port or _HTTPS, deadline) as plain:
        plain.settimeout(deadline.left())
        with context.wrap_socket(plain, server_hostname=host) as connection:
            connection.settimeout(deadline.left())
            connection.sendall("\r\n".join(lines).encode("ascii"))
            return _read(connection, deadline)


def _parts(url: str) -> SplitResult:
    if not url.isascii() or not url.isprintable() or " " in url:
        raise FetchError("this is no address")
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme == "https" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_sound = False
    if not is_sound or "@" in parts.netloc:
        raise FetchError("only https addresses without a user are asked")
    return parts


def _context(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=ca or None)
    except ssl.SSLError as error:
        raise FetchError("the certificates that it is verified with cannot be read") from error


def _connect(host: str, port: int, deadline: Deadline) -> socket.socket:
    """Return a connection to the first address of the host that takes one."""
    failure: OSError | None = None
    for family, address in _allowed(host, port, deadline):
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


def _allowed(host: str, port: int, deadline: Deadline) -> list[tuple[Any, Any]]:
    """Return the host's addresses; if one of them is private, the name leads inside."""
    found = []
    for family, _type, _protocol, _name, address in _resolve(host, port, deadline):
        if not is_allowed(ipaddress.ip_address(address[0].partition("%")[0])):
            raise FetchError("the name leads to a private address, and ISSUER_NETWORKS has it not")
        found.append((family, address))
    return found


def is_allowed(address: Address) -> bool:
    """Whether issuers may have this address: a public one, or one that the settings name."""
    inner = _inner(address)
    if any(inner in network for network in settings.ISSUER_NETWORKS):
        return True
    return inner.is_global and not inner.is_multicast


def _inner(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, or else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _resolve(host: str, port: int, deadline: Deadline) -> Any:
    """Return what the system says of the name; it knows no limit of time, so a thread asks it."""
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
    """A connection's bytes, so many at most, and none after the deadline."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._connection, self._deadline = connection, deadline
        self._left = MAX_BYTES + _MAX_HEADER_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(self._deadline.left())
        received = self._connection.recv_into(buffer)
        self._left -= received
        if self._left < 0:
            raise FetchError(f"the answer is longer than {MAX_BYTES} bytes")
        return received

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the reader that http.client asks a socket for."""
        return io.BufferedReader(self)


def _read(connection: socket.socket, deadline: Deadline) -> bytes:
    source: Any = _Limited(connection, deadline)
    response = http.client.HTTPResponse(source, method="GET")
    response.begin()
    if response.status != HTTPStatus.OK:
        raise FetchError(f"it answers with the status {response.status}")
    body = response.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise FetchError(f"the answer is longer than {MAX_BYTES} bytes")
    return body
