"""Clients that send nothing, send part of a request, or read nothing do not affect other clients.

There are as many as the server has threads, and they have no token.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.backend import Backend, document
from tests.e2e.wire import Wire
from tests.support.server import LiveServer, live_server

CLIENTS = 64
LIMIT = 4  # seconds, instead of 15 and 30
MAX_WAIT = 20  # seconds for an answer that takes milliseconds on a machine that is not loaded

LOG_IN = (
    b"POST /admin/login/ HTTP/1.1\r\nHost: localhost\r\nCookie: csrftoken=" + b"a" * 32 + b"\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n"
)
STATIC = b"/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
SENT: dict[str, bytes] = {
    "nothing": b"",
    "a byte": b"G",
    "half a header": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Half",
    "a log-in without its body": LOG_IN + b"Content-Length: 100\r\n\r\n",
    "half a log-in": LOG_IN + b"Content-Length: 100\r\n\r\nusername=",
    "a log-in that waits for a word": LOG_IN
    + b"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n",
    "half a body": b"POST /v1/api-keys HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    "a large body that nobody reads": b"POST /v1/api-keys HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Length: 1000000000\r\n\r\n{",
    "chunks that nobody reads": b"POST /healthz HTTP/1.1\r\nHost: localhost\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
    "a request and half of the next": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /he",
    "the last request of a connection": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    b"Connection: close\r\n\r\n",
    "a request whose answer nobody reads": b"GET "
    + STATIC
    + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(HEADER_TIMEOUT=str(LIMIT), BODY_TIMEOUT=str(LIMIT)) as server:
        yield server


@pytest.fixture(scope="module")
def token(server: LiveServer) -> str:
    return server.token("state:read", "state:write")


@contextlib.contextmanager
def clients(server: LiveServer, sent: bytes, count: int = CLIENTS) -> Iterator[list[socket.socket]]:
    """Keep this many connections open, with these bytes sent on each."""
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(MAX_WAIT)
            client.connect(("127.0.0.1", server.port))
            client.sendall(sent)
            opened.append(client)
        yield opened


def assert_others_are_answered(server: LiveServer, token: str) -> None:
    started = time.monotonic()
    for path in ("/healthz", "/readyz", "/v1/whoami", "/api/v1/states", "/admin/login/"):
        assert server.request("GET", path, token=token, timeout=MAX_WAIT).status == 200
    # Before, no client was answered, or each only after a slow client's timeout.
    assert time.monotonic() - started < MAX_WAIT


def end_of(client: socket.socket) -> bytes:
    """Read to the end of the connection."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while data := client.recv(65536):
            received += data
    return received


@pytest.mark.parametrize("what", SENT)
def test_slow_clients_do_not_affect_other_clients(
    server: LiveServer, token: str, what: str
) -> None:
    with clients(server, SENT[what]):
        assert_others_are_answered(server, token)


def test_stalled_clients_are_disconnected(server: LiveServer) -> None:
    """All at once, because each takes as long as the limit. Silent clients get no answer."""
    halves = ["a byte", "half a header", "half a log-in", "half a body"]
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(clients(server, b"", 3))
        slow = {what: stack.enter_context(clients(server, SENT[what], 3)) for what in halves}

        for what, opened in slow.items():
            for client in opened:
                answer = end_of(client)
                assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n"), what
                assert b'"REQUEST_TIMEOUT"' in answer, what
        assert [end_of(client) for client in silent] == [b""] * 3


def test_client_waiting_for_100_continue_gets_it_once(server: LiveServer) -> None:
    with clients(server, SENT["a log-in that waits for a word"], 1) as (client,):
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"x" * 100)
        assert client.recv(65536).startswith(b"HTTP/1.1 403 ")  # no cookie of this service


def test_occasional_bytes_do_not_extend_the_timeout(server: LiveServer, token: str) -> None:
    ended = threading.Event()

    def drip() -> None:
        while not ended.wait(0.5):
            for client in opened:
                with contextlib.suppress(OSError):
                    client.send(b"a")

    with (
        clients(server, SENT["half a header"]) as headers,
        clients(server, SENT["half a log-in"]) as bodies,
    ):
        opened = [*headers, *bodies]
        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert_others_are_answered(server, token)
            for client in opened:  # each is closed, or this fails
                end_of(client)
        finally:
            ended.set()
            dripping.join()


def test_an_answer_is_sent_as_it_is_read(server: LiveServer) -> None:
    """Larger than the kernel's buffers; the next request is answered after it."""
    last = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with clients(server, SENT["a request whose answer nobody reads"] + last, 1) as (client,):
        time.sleep(1)
        received = end_of(client)
        assert len(received) > 1_500_000
        assert received.endswith(b'{"status":"ok"}')


def test_clients_that_do_not_read_are_disconnected(server: LiveServer) -> None:
    # More than the kernel buffers.
    with clients(server, SENT["a request whose answer nobody reads"] * 8, 1) as (client,):
        time.sleep(LIMIT + 4)
        assert len(end_of(client)) < 8 * 1_500_000


def stalled_push(backend: Backend) -> Wire:
    """Begin a push that is too large for the loop, and stop in the middle."""
    wire = Wire(backend, timeout=3 * MAX_WAIT)
    wire.head("POST", Content_Length=2_000_000)
    wire.send(b"x" * 10)
    return wire


def test_a_push_that_stalls_is_ended(server: LiveServer, token: str) -> None:
    with stalled_push(Backend(server, token)) as wire:
        answer = wire.answer()
        assert (answer.status, answer.reason) == (408, "REQUEST_TIMEOUT")
        assert wire.is_closed()


def test_moderately_slow_push_is_accepted(server: LiveServer, token: str) -> None:
    """Each byte extends the time: it takes longer than the limit for a stalled client."""
    backend = Backend(server, token)
    body = document(1, filler="x" * 1_500_000)
    with Wire(backend, timeout=3 * MAX_WAIT) as wire:
        wire.head("POST", Content_Length=len(body))
        for start in range(0, len(body), 100_000):
            wire.send(body[start : start + 100_000])
            time.sleep(LIMIT / 12)
        assert wire.answer().status == 200


@pytest.fixture(scope="module")
def small_pool() -> Iterator[LiveServer]:
    """A server whose only worker has two connections."""
    with live_server(WEB_WORKERS="1", DATABASE_POOL_MAX="2") as server:
        yield server


def slow_reader(backend: Backend) -> Wire:
    wire = Wire(backend)
    wire.head("GET")
    return wire


def stalled_body(backend: Backend) -> Wire:
    wire = Wire(backend)
    wire.head("LOCK", Content_Length=100)
    wire.send(b"{")
    return wire


def chunks_that_stall(backend: Backend) -> Wire:
    wire = Wire(backend)
    wire.head("LOCK", Transfer_Encoding="chunked")
    wire.send(b"64\r\n{")
    return wire


@pytest.mark.parametrize("slow", [stalled_body, chunks_that_stall, stalled_push, slow_reader])
def test_no_connection_is_kept_for_a_slow_client(
    small_pool: LiveServer, slow: Callable[[Backend], Wire]
) -> None:
    """Before, two slow clients blocked a pool of two until their end."""
    token = small_pool.token("state:read", "state:write")
    backend = Backend(small_pool, token)
    assert backend.push(document(1, filler="x" * 7 * 1024 * 1024)).status == 200
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.callback(slow(backend).socket.close)
        time.sleep(0.5)
        for _ in range(3):
            assert_others_are_answered(small_pool, token)
            assert Backend(small_pool, token).push(document(1)).status == 200
