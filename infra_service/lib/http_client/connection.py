"""Send HTTP requests with a deadline, a size limit and an address policy, without redirects.

``check`` prevents SSRF: the client resolves a name once, checks all its addresses, and connects to
a checked address. A later change of the name's addresses has no effect.
"""

from __future__ import annotations

import base64
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

#: The maximum bytes of a response, in addition to twice the limit of its body: the chunked encoding
#: doubles the length of chunks of six bytes.
_MAX_HEAD_BYTES: Final = 64 * 1024
_PIECE: Final = 64 * 1024
_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Message
    #: The body, or empty if the limit was None.
    body: bytes = b""

    @property
    def is_success(self) -> bool:
        """Return whether the status is 2xx."""
        return self.status in range(200, 300)


def parse_url(url: str, schemes: Collection[str] = ("https",)) -> SplitResult:
    """Parse a URL, which must contain a host and no user name.

    Raises:
        FetchError: the URL is malformed, has an unsupported scheme, or contains a user name.
    """
    if not url.isascii() or not url.isprintable() or " " in url:
        raise FetchError("the URL is not valid")
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
    """Return the scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or _PORTS[parts.scheme]}"


class Connection(http.client.HTTPConnection):
    """A connection to the origin of a URL.

    ``context`` is the TLS context. The default trusts the system's certificate authorities.
    ``check`` raises a FetchError to reject an address. ``proxy`` is the host and port of a
    tunneling proxy (CONNECT), and ``proxy_login`` its user name and password, ``user:password``.
    ``keep`` keeps the connection open for the next request.
    """

    def __init__(
        self,
        url: str,
        *,
        context: ssl.SSLContext | None = None,
        check: Callable[[Address], None] | None = None,
        proxy: tuple[str, int] | None = None,
        proxy_login: str = "",
        keep: bool = False,
    ) -> None:
        parts = urlsplit(url)
        self.default_port = _PORTS[parts.scheme]  # the Host header includes any other port
        # Pass a port, because http.client would search for one in an IPv6 address.
        super().__init__(parts.hostname or "", parts.port or self.default_port)
        is_secure = parts.scheme == "https"
        self._context = (context or ssl.create_default_context()) if is_secure else None
        self._check, self._keep = check, keep
        self._proxy, self._proxy_login = proxy, proxy_login
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
        """Request a URL of this origin, and return the response with at most ``limit`` bytes.

        The body of an error response is truncated to the limit. If the limit is None, no body is
        read.

        Raises:
            TooLargeError: the body of a successful response exceeds the limit.
            FetchError: no complete response arrived before the deadline, or the address is
                    rejected. ``__cause__`` is the error of the network or the protocol, if any.
            ValueError: a header contains a line break, or is not Latin-1.
        """
        self._deadline, self._limit = deadline, limit or 0
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = dict(headers) if self._keep else {**headers, "Connection": "close"}
        try:
            if self.sock is None:
                self.connect()
            # A server may respond before it has read the whole body, for example to reject it.
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
        """Open the connection, through the proxy and with TLS if configured."""
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
        """Send bytes until the deadline.

        On a TLS socket, ``sendall`` applies its timeout to each piece.
        """
        view = memoryview(data)
        while view:
            self.sock.settimeout(self._deadline.left())
            view = view[self.sock.send(view[:_PIECE]) :]

    def shut_down(self) -> None:
        """Interrupt a thread that waits for this connection. Closing it would not interrupt it."""
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
        lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
        if self._proxy_login:
            login = base64.b64encode(self._proxy_login.encode()).decode()
            lines.append(f"Proxy-Authorization: Basic {login}")
        self.send("\r\n".join([*lines, "", ""]).encode("ascii"))
        with self.response_class(self.sock, method="CONNECT") as response:
            response.begin()
            if response.status not in range(200, 300):
                raise OSError(f"the proxy responds with {response.status}")


class _Bounded(io.RawIOBase):
    """A reader of a socket until the deadline, limited to ``most`` bytes."""

    def __init__(self, sock: socket.socket, deadline: Deadline, most: int) -> None:
        self._sock, self._deadline = sock, deadline
        self._most = self._left = most
        # Keeps the socket open until the response is read, even if http.client closes its file.
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
    """Read the body of a response.

    Raises:
        TooLargeError: the body of a successful response exceeds the limit.
        http.client.IncompleteRead: the body is shorter than its Content-Length, or a chunk has a
            negative size, which http.client does not reject.
    """
    announced = response.length
    is_success = response.status in range(200, 300)
    if is_success and announced is not None and announced > limit:
        raise TooLargeError(announced, limit)
    try:
        body = response.read(limit + 1)
    except (ValueError, OverflowError) as error:
        raise http.client.IncompleteRead(b"") from error
    if len(body) > limit:
        if is_success:
            raise TooLargeError(len(body), limit)
        return body[:limit]
    if announced is not None and len(body) < announced:
        raise http.client.IncompleteRead(body, announced - len(body))
    if not response.isclosed():
        response.read()  # read the end of a chunked body, so that the connection can be reused
    return body
