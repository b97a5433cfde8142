"""Answers of hostile receivers: each is a failed attempt, and never an exception."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra_service.webhooks import queue, sending
from infra_service.webhooks.sending import Outcome, post
from tests.conftest import ApiClient
from tests.infra_service.webhooks.conftest import deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver, answers
from tests.states.conftest import Backend, document

Talk = Callable[[socket.socket], None]


class Peer:
    """A TCP server that sends given bytes, regardless of the request."""

    def __init__(self) -> None:
        self.talk: Talk = lambda _: None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(5)
                    connection.recv(65536)
                    self.talk(connection)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.close()


def sends(data: bytes) -> Talk:
    return lambda connection: connection.sendall(data)


def resets(data: bytes) -> Talk:
    """Return how a peer sends some bytes and then resets the connection."""

    def talk(connection: socket.socket) -> None:
        connection.sendall(data)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return talk


def posted(peer: Peer, talk: Talk, scheme: str = "http") -> Outcome:
    """Post to the peer, and check that the outcome can be recorded."""
    peer.talk = talk
    answer = post(f"{scheme}://127.0.0.1:{peer.port}/hook", {"webhook-id": "msg_1"}, b"{}")
    assert answer.status is None or 0 <= answer.status <= 32767
    assert "\0" not in answer.error
    queue._next_attempt(0, answer, timezone.now())
    return answer


#: Times outside the range of Python's dates, and texts that are not times.
MOMENTS = [
    "Mon, 01 Jan 2026 00:00:00 +99999999999999",
    "Mon, 01 Jan 2026 00:00:00 +99999999999999999999",
    "Mon, 01 Jan 2026 00:00:00 -99999999999999",
    "Mon, 01 Jan 9999 23:59:59 -2359",
    "Mon, 01 Jan 0001 00:00:00 +2359",
    "Fri, 31 Dec 9999 23:59:60 GMT",
    "Mon, 99 Jan 2026 00:00:00 GMT",
    "Mon, 01 Jan 99999999999 00:00:00 GMT",
    "1" * 5000,
    "0" * 5000,
    "٣" * 20,
    "²",
    "-1",
    "1e9",
    "NaN",
    "\udc80",
    ",",
    "1, 2",
    "Mon,",
    "1 1 1 1 1 1 1",
]


@pytest.mark.parametrize("value", MOMENTS)
def test_unreadable_retry_after_is_ignored(value: str, peer: Peer) -> None:
    head = b"HTTP/1.1 503 Busy\r\nRetry-After: " + value.encode("utf-8", "surrogateescape")
    answer = posted(peer, sends(head + b"\r\nContent-Length: 0\r\n\r\n"))

    assert answer.status == 503


ODD: dict[str, Talk] = {
    "nothing": sends(b""),
    "reset": resets(b""),
    "reset in the head": resets(b"HTTP/1.1 200 OK\r\nX-"),
    "no status": sends(b"HTTP/1.1\r\n\r\n"),
    "status of letters": sends(b"HTTP/1.1 abc\r\n\r\n"),
    "status of other digits": sends("HTTP/1.1 ²00 OK\r\n\r\n".encode("latin-1")),
    "status below 100": sends(b"HTTP/1.1 1 OK\r\n\r\n"),
    "status above 999": sends(b"HTTP/1.1 70000 OK\r\n\r\n"),
    "status of 5000 digits": sends(b"HTTP/1.1 " + b"2" * 5000 + b" OK\r\n\r\n"),
    "another protocol": sends(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "another version": sends(b"HTTP/9.9 200 OK\r\n\r\n"),
    "continue for ever": sends(b"HTTP/1.1 100 Continue\r\n\r\n" * 5000),
    "a long status line": sends(b"HTTP/1.1 200 " + b"x" * 100_000),
    "a long header": sends(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000),
    "many headers": sends(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000),
    "no end of the head": sends(b"HTTP/1.1 200 OK\r\nX: y\r\n"),
    "NUL": sends(b"HTTP/1.1 200 O\0K\r\nX\0: \0\r\n\r\n"),
    "bytes": sends(bytes(range(256)) * 8),
    "TLS": sends(b"\x15\x03\x03\x00\x02\x02\x28"),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_odd_answer(name: str, scheme: str, peer: Peer) -> None:
    answer = posted(peer, ODD[name], scheme)

    assert answer.status in (None, 200)
    assert bool(answer.error) is (answer.status is None)


BODIES = {
    "length of letters": b"Content-Length: abc",
    "negative length": b"Content-Length: -1",
    "length of 5000 digits": b"Content-Length: " + b"9" * 5000,
    "two lengths": b"Content-Length: 1\r\nContent-Length: 2",
    "chunked": b"Transfer-Encoding: chunked",
    "chunked and a length": b"Transfer-Encoding: chunked\r\nContent-Length: 3",
    "an unknown coding": b"Transfer-Encoding: x\xff\r\nContent-Encoding: \xff",
    "a charset": b"Content-Type: text/html; charset=\xff\x00",
    "a folded header": b"X: a\r\n b",
    "a header without a name": b": x",
    "a header without a colon": b"x",
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_not_read(name: str, peer: Peer) -> None:
    answer = posted(peer, sends(b"HTTP/1.1 200 OK\r\n" + BODIES[name] + b"\r\n\r\nzz\r\nG\r\n"))

    assert answer.is_success


_HEADERS = st.sampled_from(["Retry-After", "Content-Length", "Transfer-Encoding", "Date", "X"])
_VALUES = st.one_of(
    st.binary(max_size=60),
    st.integers().map(lambda number: str(number).encode()),
    st.sampled_from([moment.encode("utf-8", "surrogateescape") for moment in MOMENTS]),
    st.from_regex(rb"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{1,6} \d\d:\d\d:\d\d [+-]?\w{1,25}"),
)


@pytest.mark.long
@settings(
    max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    start=st.one_of(
        st.integers(0, 1000).map(lambda status: f"HTTP/1.1 {status} x\r\n".encode()),
        st.binary(max_size=40),
    ),
    headers=st.lists(st.tuples(_HEADERS, _VALUES), max_size=5),
    end=st.sampled_from([b"\r\n", b"\n", b"", b"\r\n0\r\n\r\n"]),
    cut=st.booleans(),
)
def test_any_answer(
    peer: Peer, start: bytes, headers: list[tuple[str, bytes]], end: bytes, cut: bool
) -> None:
    head = start + b"".join(name.encode() + b": " + value + b"\r\n" for name, value in headers)
    answer = posted(peer, (resets if cut else sends)(head + end))

    assert answer.status is not None or answer.error


NAMES = {
    "http://no-such-name.invalid/": "the host name cannot be resolved",
    f"http://{'a' * 64}.example/": "the host name cannot be resolved",
    f"http://{'a.' * 200}example/": "the host name cannot be resolved",
    "http://..example/": "the host name cannot be resolved",
}


@pytest.mark.parametrize("url", NAMES)
def test_a_name_that_leads_nowhere(url: str) -> None:
    assert NAMES[url] in post(url, {}, b"{}").error


def test_an_exception_of_an_attempt_is_a_failed_attempt(
    client: ApiClient, backend: Backend, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Including unforeseen exceptions."""
    hook = hook_of(client, receiver, "state.push")
    backend.push(document())

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(sending, "_moment", fail)
        deliver()
    (failed,) = hook.deliveries()
    assert (failed["status"], failed["attempts"]) == ("WAITING", 1)
    assert failed["error"] == "the attempt failed: ZeroDivisionError"


def test_healthy_receivers_get_each_message_once(
    client: ApiClient, backend: Backend, receiver: Receiver, peer: Peer
) -> None:
    head = f"HTTP/1.1 503 Busy\r\nRetry-After: {MOMENTS[0]}\r\n\r\n".encode()
    peer.talk = sends(head)
    hostile = hook_of(client, receiver, "state.push", url=f"http://127.0.0.1:{peer.port}/")
    healthy = hook_of(client, receiver, "state.push")
    receiver.answer = answers(204)
    for serial in (1, 2, 3):
        backend.push(document(serial))
        deliver()

    assert [one.payload["data"]["serial"] for one in receiver.received] == [1, 2, 3]
    assert {one["status"] for one in healthy.deliveries()} == {"DELIVERED"}
    assert hostile.deliveries()[0]["response_status"] == 503
