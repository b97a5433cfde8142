"""A graceful shutdown: requests in flight are answered, the exit code is 0, the port is free."""

from __future__ import annotations

import contextlib
import signal
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.backend import Backend, document
from tests.e2e.database import problems, versions_of
from tests.e2e.wire import Wire
from tests.support.server import LiveServer
from tests.support.waiting import MAX_WAIT, wait_until

BODY = document(1, filler="x" * 500_000)


@pytest.fixture(scope="module")
def own() -> Iterator[Backend]:
    """A server for these tests, each of which restarts it."""
    with tempfile.TemporaryDirectory(prefix="infra-live-") as directory:
        server = LiveServer(Path(directory))
        with contextlib.closing(server):
            server.prepare()
            yield Backend(server, server.token("state:read", "state:write"))


@pytest.fixture
def running(own: Backend) -> Iterator[Backend]:
    own.server.start()
    yield Backend(own.server, own.token)
    if own.server.is_running:  # the test has failed
        own.server.kill()


def assert_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # not to wait for TIME_WAIT
        probe.bind(("127.0.0.1", port))


@pytest.mark.parametrize(
    ("number", "to_all"),
    [(signal.SIGTERM, False), (signal.SIGINT, False), (signal.SIGINT, True)],
    ids=["SIGTERM", "SIGINT", "Ctrl-C"],
)
def test_request_in_flight_is_answered(
    running: Backend, number: signal.Signals, to_all: bool
) -> None:
    server = running.server
    workers = server.workers()
    with Wire(running) as wire:
        wire.head("POST", Content_Length=len(BODY), Expect="100-continue")
        assert wire.line() == b"HTTP/1.1 100 Continue\r\n"  # a worker has it, not the kernel
        assert wire.line() == b"\r\n"
        wire.send(BODY[:250_000])
        server.signal(number, to_all=to_all)
        time.sleep(0.5)
        wire.send(BODY[250_000:])
        answer = wire.answer()
    assert (answer.status, answer.body) == (200, b"")
    assert server.ended() == 0
    assert_free(server.port)
    wait_for_end_of(workers)
    assert [version["size_bytes"] for version in versions_of(running)] == [len(BODY)]
    assert problems(running) == []


def outcome(port: int) -> str:
    """Return the outcome of a new client."""
    try:
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return client.recv(12).decode() or "closed"
    except OSError as error:
        return type(error).__name__


def test_the_port_is_closed_while_requests_are_answered(running: Backend) -> None:
    """A new client is refused at once, so that a proxy chooses another instance."""
    server = running.server
    with Wire(running) as wire:
        wire.head("POST", Content_Length=len(BODY), Expect="100-continue")
        assert wire.line() == b"HTTP/1.1 100 Continue\r\n"
        assert wire.line() == b"\r\n"
        wire.send(BODY[:250_000])
        server.signal(signal.SIGTERM)
        wait_until(lambda: outcome(server.port) == "ConnectionRefusedError")
        wire.send(BODY[250_000:])
        assert wire.answer().status == 200
    assert server.ended() == 0


def test_no_client_waits_in_vain(running: Backend) -> None:
    """Clients that connect while the port is closed are answered or refused."""
    server = running.server
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    began = time.monotonic()
    signalled, latest = False, Counter[str]()
    with ThreadPoolExecutor(16) as clients:
        while latest["ConnectionRefusedError"] < 16:
            assert time.monotonic() < began + MAX_WAIT
            if not signalled and time.monotonic() > began + 1:
                server.signal(signal.SIGTERM)
                signalled = True
            asked = time.monotonic()
            latest = Counter(clients.map(outcome, [server.port] * 16))
            slowest = max(slowest, time.monotonic() - asked)
            outcomes += latest
    assert server.ended() == 0
    assert outcomes["HTTP/1.1 200"] > 0
    assert outcomes.keys() == {"HTTP/1.1 200", "ConnectionRefusedError"}
    assert slowest < 5


def wait_for_end_of(processes: list[int]) -> None:
    """Wait until workers have ended, which may be shortly after the main process."""
    wait_until(lambda: not [pid for pid in processes if Path(f"/proc/{pid}").exists()])


def test_idle_server_ends_at_once(running: Backend) -> None:
    assert running.get().status == 404
    started = time.monotonic()
    assert running.server.stop() == 0
    assert time.monotonic() - started < 20
    assert_free(running.server.port)
