"""The HTTP client: connections that are used again, limits, the tunnel of a proxy, interruption."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.client import IncompleteRead
from ipaddress import IPv4Address

import pytest

from infra_service.lib.http_client.connection import Connection, Response
from infra_service.lib.http_client.deadline import Deadline
from infra_service.lib.http_client.errors import FetchError, NoResponseError, TooLargeError
from tests.support.waiting import MAX_WAIT

Talk = Callable[[socket.socket], None]


class Peer:
    """Talks with each client that connects; ``talk`` gets the connection after the first bytes."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.talk: Talk = lambda _: None
        self.connections = 0
        self.received: list[bytes] = []
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.address[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                try:
                    while data := connection.recv(65536):
                        self.received.append(data)
                        self.talk(connection)
                except OSError:
                    pass

    def close(self) -> None:
        # Closing alone would not wake up the thread.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.close()


def sends(data: bytes) -> Talk:
    return lambda connection: connection.sendall(data)


def waits(over: threading.Event) -> Talk:
    def talk(_: socket.socket) -> None:
        over.wait(MAX_WAIT)

    return talk


def get(connection: Connection, url: str, *, limit: int | None = 100) -> Response:
    return connection.exchange("GET", url, {}, deadline=Deadline(MAX_WAIT), limit=limit)


def test_a_kept_connection_is_used_again(peer: Peer) -> None:
    peer.talk = sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
    kept, other = Connection(peer.url, keep=True), Connection(peer.url)

    bodies = [get(kept, f"{peer.url}?page={page}").body for page in range(3)]
    assert (bodies, peer.connections) == ([b"{}"] * 3, 1)
    kept.close()
    for _ in range(2):
        get(other, f"{peer.url}/a")

    assert peer.connections == 3
    heads = [head.split(b"\r\n") for head in peer.received]
    assert heads[0][:2] == [
        b"GET /?page=0 HTTP/1.1",
        peer.url.replace("http://", "Host: ").encode(),
    ]
    assert [b"Connection: close" in head for head in heads] == [False] * 3 + [True] * 2


def test_a_connection_that_the_server_closed_is_opened_again(peer: Peer) -> None:
    def once(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it")
        connection.shutdown(socket.SHUT_RDWR)

    peer.talk = once
    kept = Connection(peer.url, keep=True)

    assert [get(kept, peer.url).body for _ in range(2)] == [b"all of it"] * 2


@pytest.mark.parametrize("head", [b"Content-Length: 5000", b"Transfer-Encoding: chunked"])
def test_size_of_a_body_is_limited(peer: Peer, head: bytes) -> None:
    body = b"x" * 5000 if b"Length" in head else b"1388\r\n" + b"x" * 5000 + b"\r\n0\r\n\r\n"
    for status in (b"200", b"403"):
        peer.talk = sends(b"HTTP/1.1 %s x\r\n%s\r\n\r\n%s" % (status, head, body))
        if status == b"403":
            assert get(Connection(peer.url), peer.url).body == b"x" * 100
            continue
        with pytest.raises(TooLargeError, match="longer than 100 bytes"):
            get(Connection(peer.url), peer.url)
        assert get(Connection(peer.url), peer.url, limit=5000).body == b"x" * 5000
        assert get(Connection(peer.url), peer.url, limit=None).body == b""


def test_short_body_is_reported(peer: Peer) -> None:
    def half(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        connection.shutdown(socket.SHUT_RDWR)

    peer.talk = half
    with pytest.raises(NoResponseError) as caught:
        get(Connection(peer.url), peer.url)

    assert isinstance(caught.value.__cause__, IncompleteRead)


@pytest.mark.parametrize("size", [b"-1", b"-5", b"-" + b"f" * 40])
def test_negative_chunk_size_is_reported(peer: Peer, size: bytes) -> None:
    def chunk(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + size)
        connection.sendall(b"\r\nhalf\r\n0\r\n\r\n")
        connection.shutdown(socket.SHUT_RDWR)

    peer.talk = chunk
    with pytest.raises(NoResponseError, match="IncompleteRead"):
        get(Connection(peer.url), peer.url)


def test_a_refusal_before_the_body_is_read(peer: Peer) -> None:
    def refuse(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 413 x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass

    peer.talk = refuse
    body = b"x" * 5_000_000
    response = Connection(peer.url).exchange(
        "POST", peer.url, {}, body, deadline=Deadline(MAX_WAIT), limit=9
    )

    assert (response.status, response.is_success) == (413, False)


@pytest.mark.parametrize("limits", [(0.5,), (60, 0.5)])
def test_stalled_receiver_is_timed_out(peer: Peer, limits: tuple[float, ...]) -> None:
    over = threading.Event()
    peer.talk = waits(over)
    began = time.monotonic()

    with pytest.raises(FetchError, match="took too long"):
        Connection(peer.url).exchange(
            "POST", peer.url, {}, b"x" * 20_000_000, deadline=Deadline(*limits), limit=9
        )

    over.set()
    assert time.monotonic() - began < 5


def test_rejected_address_is_not_connected(peer: Peer) -> None:
    def reject(address: object) -> None:
        assert address == IPv4Address("127.0.0.1")
        raise FetchError("not there")

    with pytest.raises(FetchError, match="not there"):
        get(Connection(peer.url, check=reject), peer.url)

    assert peer.connections == 0


def test_proxy_tunnel_is_used(peer: Peer) -> None:
    """A proxy that opens the tunnel without speaking TLS, and a proxy that refuses it."""
    peer.talk = sends(b"HTTP/1.1 200 OK\r\n\r\n")
    url = "https://service.example:8443"

    with pytest.raises(NoResponseError, match=r"no response: \[SSL: \w+\] [a-z ]+$"):
        get(Connection(url, proxy=peer.address), url)

    assert peer.received[0].startswith(b"CONNECT service.example:8443 HTTP/1.1\r\nHost: service")
    assert peer.received[1].startswith(b"\x16\x03")  # the client's hello
    peer.talk = sends(b"HTTP/1.1 407 x\r\nContent-Length: 0\r\n\r\n")
    with pytest.raises(NoResponseError) as caught:
        get(Connection(url, proxy=peer.address), url)
    assert "407" in str(caught.value.__cause__)


def test_an_interruption_before_or_while_it_waits(peer: Peer) -> None:
    early, late = Connection(peer.url), Connection(peer.url)
    early.shut_down()
    with pytest.raises(NoResponseError, match="no response: shut down"):
        get(early, peer.url)
    assert not peer.received

    peer.talk = lambda _: late.shut_down()
    with pytest.raises(NoResponseError):
        late.exchange("GET", peer.url, {}, deadline=Deadline(MAX_WAIT), limit=9)
    assert len(peer.received) == 1


def test_ipv6_address_is_connected() -> None:
    peer = Peer("::1")
    peer.talk = sends(b"HTTP/1.1 204 x\r\n\r\n")
    try:
        assert get(Connection(peer.url), peer.url).status == 204
    finally:
        peer.close()

    assert f"\r\nHost: [::1]:{peer.address[1]}\r\n".encode() in peer.received[0]


def test_a_name_that_is_not_resolved_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(30))

    with pytest.raises(FetchError, match="the name was not resolved in time") as caught:
        Connection("http://slow.example").exchange(
            "GET", "http://slow.example/", {}, deadline=Deadline(60, idle_timeout=0.2), limit=9
        )

    over.set()
    assert isinstance(caught.value.__cause__, TimeoutError)


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("https://[2606:4700::1:443]/x", "2606:4700::1:443", 443),
        ("https://[2606:4700::1111]/x", "2606:4700::1111", 443),
        ("https://[2606:4700::abcd]/x", "2606:4700::abcd", 443),
        ("http://[::1]/", "::1", 80),
        ("https://[::1]:8443/", "::1", 8443),
        ("https://example.com/", "example.com", 443),
    ],
)
def test_host_and_port_are_sent(url: str, host: str, port: int) -> None:
    connection = Connection(url)

    assert (connection.host, connection.port) == (host, port)
