"""HTTP requests with a deadline, a size limit and an address policy; redirects are not followed.

Prevent SSRF with ``check``: a name is resolved once, all its addresses are checked, and the
client connects to a checked address. A name that resolves otherwise later has no effect.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from infra_service.lib.http_client.deadline import Deadline
from infra_service.lib.http_client.errors import FetchError, NoResponseError, TooLargeError
from infra_service.lib.http_client.resolving import open_socket

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from email.message import Message
    from urllib.parse import SplitResult

    from infra_service.lib.http_client.addresses import Address

#: Bytes of a response besides twice its body's limit: chunks of six bytes are twice as long.
_MAX_HEAD_BYTES: Final = 64 * 1024
_PIECE: Final = 64 * 1024
_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Message
    #: Empty if the limit was None.
    body: bytes = b""

    @property
    def is_success(self) -> bool:
        """Return whether the status is 2xx."""
        return self.status in range(200, 300)


def parse_url(url: str, schemes: Collection[str] = ("https",)) -> SplitResult:
    """Return the parts of a URL with a host and without a user.

    Raises:
        FetchError: the URL is malformed, or has another scheme.
    """
    if not url.isascii() or not url.isprintable() or " " in url:
        raise FetchError("this is not a valid URL")
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_sound = False
    if not is_sound or "@" in parts.netloc:
        raise FetchError(
            f"only {' and '.join(schemes)} URLs without a user name or password are allowed"
        )
    return parts


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or _PORTS[parts.scheme]}"


class Connection(http.client.HTTPConnection):
    """A connection to the origin of a URL.

    ``context`` is for TLS; by default it trusts the system's authorities. ``check`` rejects an
    address by a FetchError. ``proxy`` is host and port of a proxy that tunnels (CONNECT). With
    ``keep`` the connection stays open for the next request.
    """

    def __init__(
        self,
        url: str,
        *,
        context: ssl.SSLContext | None = None,
        check: Callable[[Address], None] | None = None,
        proxy: tuple[str, int] | None = None,
        keep: bool = False,
    ) -> None:
        parts = urlsplit(url)
        self.default_port = _PORTS[parts.scheme]  # the Host header has any other port
        # With a port, because http.client would look for one in an IPv6 address.
        super().__init__(parts.hostname or "", parts.port or self.default_port)
        is_secure = parts.scheme == "https"
        self._context = (context or ssl.create_default_context()) if is_secure else None
        self._check, self._proxy, self._keep = check, proxy, keep
        self._deadline, self._limit = Deadline(0), 0
        self._is_shut_down = False

    def exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        deadline: Deadline,
        limit: int | None,
    ) -> Response:
        """Request a URL of this origin; return the response with a body of ``limit`` bytes at most.

        The body of an error is cut to the limit. With limit None no body is read.

        Raises:
            TooLargeError: the body of a success exceeds the limit.
            FetchError: no complete response before the deadline, or the address is rejected.
                ``__cause__`` is the error of the network or of the protocol, if there is one.
            ValueError: a header contains a line break, or is not Latin-1.
        """
        self._deadline, self._limit = deadline, limit or 0
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = dict(headers) if self._keep else {**headers, "Connection": "close"}
        try:
            if self.sock is None:
                self.connect()
            # A server may answer before it has read the whole body, for example to refuse it.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.request(method, target, body, lines)
            with self.getresponse() as response:
                content = b"" if limit is None else _read(response, limit)
                if not (self._keep and response.isclosed()):
                    self.close()
            return Response(response.status, response.headers, content)
        except BaseException as error:
            self.close()
            if isinstance(error, TimeoutError):
                raise FetchError("the response took too long") from error
            if isinstance(error, (OSError, http.client.HTTPException)):
                raise NoResponseError(error) from error
            raise

    def connect(self) -> None:
        """Open the connection: through the proxy if there is one, and with TLS if configured."""
        host, port = self._proxy or (self.host, self.port)
        self.sock = open_socket(host, port, self._deadline, self._check)
        if self._proxy:
            self._open_tunnel()
        if self._context:
            self.sock.settimeout(self._deadline.left())
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self.host)
        if self._is_shut_down:
            raise ConnectionAbortedError("shut down")

    def send(self, data: Any) -> None:
        """Send bytes until the deadline; a TLS socket's ``sendall`` limits each piece only."""
        view = memoryview(data)
        while view:
            self.sock.settimeout(self._deadline.left())
            view = view[self.sock.send(view[:_PIECE]) :]

    def shut_down(self) -> None:
        """Interrupt a thread that waits for this connection; closing it would not."""
        self._is_shut_down = True
        sock = self.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def response_class(  # type: ignore[override]  # http.client calls it for each response
        self, sock: socket.socket, **options: Any
    ) -> http.client.HTTPResponse:
        """Return a response that reads from the socket within the limits."""
        source: Any = _Bounded(sock, self._deadline, _MAX_HEAD_BYTES + 2 * self._limit)
        return http.client.HTTPResponse(source, **options)

    def _open_tunnel(self) -> None:
        host = f"[{self.host}]" if ":" in self.host else self.host
        place = f"{host}:{self.port}"
        self.send(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode("ascii"))
        with self.response_class(self.sock, method="CONNECT") as response:
            response.begin()
            if response.status not in range(200, 300):
                raise OSError(f"the proxy responds with {response.status}")


class _Bounded(io.RawIOBase):
    """Reads from a socket until the deadline, and ``most`` bytes at most."""

    def __init__(self, sock: socket.socket, deadline: Deadline, most: int) -> None:
        self._sock, self._deadline = sock, deadline
        self._most = self._left = most
        # Keeps the socket open until the response is read, also when http.client closes its own.
        self._file: Any = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._deadline.left())
        received: int = self._file.readinto(buffer)
        self._left -= received
        if self._left < 0:
            raise FetchError(f"the response is longer than {self._most} bytes")
        return received

    def close(self) -> None:
        self._file.close()
        super().close()

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the reader that http.client requests from a socket."""
        return io.BufferedReader(self)


def _read(response: http.client.HTTPResponse, limit: int) -> bytes:
    """Read a body.

    Raises:
        TooLargeError: the response is a success, and its body exceeds the limit.
        http.client.IncompleteRead: the body is shorter than announced.
    """
    announced = response.length
    is_success = response.status in range(200, 300)
    if is_success and announced is not None and announced > limit:
        raise TooLargeError(announced, limit)
    body = response.read(limit + 1)
    if len(body) > limit:
        if is_success:
            raise TooLargeError(len(body), limit)
        return body[:limit]
    if announced is not None and len(body) < announced:
        raise http.client.IncompleteRead(body, announced - len(body))
    if not response.isclosed():
        response.read()  # the end of a chunked body, so that the connection can be used again
    return body
