"""The server loop's handling of connections in states that a live server cannot reach reliably."""

from __future__ import annotations

import errno
import os
import resource
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from gunicorn.config import Config
from gunicorn.glogging import Logger

from infra_service.lib.server import arrivals, pace, worker
from infra_service.lib.server.arrivals import LARGEST_BODY, Arrival
from infra_service.lib.server.pace import LARGEST_REST, PacedSocket
from infra_service.lib.server.worker import ServiceWorker
from tests.support.waiting import wait_until

EXHAUSTED = [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM]
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"


def arrival() -> Arrival:
    return Arrival(60, largest_head=1000)


@pytest.mark.parametrize(
    ("parts", "complete"),
    [
        ([b"GET / HTTP/1.1\r\n", b"Host: x\r\n", b"\r\n"], True),
        ([b"GET / HTTP/1.1\r\nHost: x\r", b"\n", b"\r", b"\n"], True),
        ([HEAD, b"Content-Length: 5\r\n\r\n", b"1234", b"5"], True),
        ([HEAD, b"content-length:5\r\n\r\n1234"], False),
        ([HEAD, b"Content-Length: 5\r\n\r\n123456"], True),
        ([HEAD, b"Content-Length: 0\r\n\r\n"], True),
        ([HEAD, b"Content-Length: 00000000\r\n\r\n"], True),
        ([HEAD, b"Content-Length: 0000000005\r\n\r\n", b"12345"], True),
        ([HEAD, b"Content-Length: " + b"0" * 5000 + b"5\r\n\r\n", b"12345"], True),
        ([HEAD, b"Content-Length: %d\r\n\r\n" % LARGEST_BODY], False),
        # Requests that a thread receives itself, or refuses.
        ([HEAD, b"Content-Length: %d\r\n\r\n" % (LARGEST_BODY + 1)], True),
        ([HEAD, b"Content-Length: 99999999999999999999\r\n\r\n"], True),
        ([HEAD, b"Content-Length: x\r\n\r\n"], True),
        ([HEAD, b"Transfer-Encoding: chunked\r\n\r\n"], True),
        ([HEAD, b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"], True),
        ([b"\n\n"], False),
    ],
)
def test_when_a_thread_begins(parts: list[bytes], complete: bool) -> None:
    arriving = arrival()

    assert [arriving.add(part) for part in parts] == [False] * (len(parts) - 1) + [complete]
    assert arriving.received == b"".join(parts)


@pytest.mark.parametrize("value", [b"100-continue", b"100-Continue "])
def test_expect_continue_is_recognized_and_removed(value: bytes) -> None:
    arriving = arrival()

    assert not arriving.add(HEAD + b"Expect: " + value + b"\r\nContent-Length: 5\r\n\r\n")
    assert arriving.is_expecting
    assert arriving.add(b"12345")
    # Without Expect, because the server's own parser would send 100 Continue again.
    assert arriving.received == HEAD + b"Content-Length: 5\r\n\r\n12345"


@pytest.mark.parametrize("expect", [b"", b"Expect: 200-ok\r\n"])
def test_other_expect_headers_are_ignored(expect: bytes) -> None:
    arriving = arrival()
    assert not arriving.add(HEAD + expect + b"Content-Length: 5\r\n\r\n")
    assert not arriving.is_expecting


def test_headers_and_body_have_time_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(arrivals.time, "monotonic", lambda: now[0])
    arriving = Arrival(75, largest_head=1000)
    assert arriving.deadline == 1075

    now[0] = 1070
    arriving.add(HEAD)
    assert arriving.deadline == 1075  # the elapsed wait counts
    arriving = Arrival(75, largest_head=1000)
    arriving.add(HEAD)
    now[0] = 1080
    arriving.add(b"X: y\r\n")
    assert arriving.deadline == 1070 + pace.HEADER_TIMEOUT  # and more headers give no more

    arriving.add(b"Content-Length: 200000\r\n\r\n")
    assert 1080 + pace.BODY_TIMEOUT < arriving.deadline < 1081 + pace.BODY_TIMEOUT
    now[0] = 1090
    arriving.add(b"x" * pace.LEAST_RATE)
    assert 1081 + pace.BODY_TIMEOUT < arriving.deadline < 1082 + pace.BODY_TIMEOUT


def test_linger_after_the_response_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(arrivals.time, "monotonic", lambda: now[0])
    ending = Arrival(arrivals.LINGER, is_ending=True)
    now[0] += 1.5
    ending.linger()
    assert ending.deadline == now[0] + arrivals.LINGER

    now[0] += pace.BODY_TIMEOUT
    ending.linger()
    assert ending.deadline == 1000 + arrivals.LINGER + pace.BODY_TIMEOUT  # not for ever


class Pair:
    """A paced connection, and its peer."""

    def __init__(self) -> None:
        ours, self.peer = socket.socketpair()
        self.ours = PacedSocket(fileno=ours.detach())
        self.ours.begin_request()

    def close(self) -> None:
        self.ours.close()
        self.peer.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.close()


def test_waiting_ends(pair: Pair) -> None:
    pair.ours.receiving.left = 0.05
    pair.peer.sendall(b"x" * 10)
    assert pair.ours.recv(100) == b"x" * 10
    with pytest.raises(TimeoutError):
        pair.ours.recv(100)
    pair.ours.receiving.left = 0
    with pytest.raises(TimeoutError):
        pair.ours.recv(100)


def test_a_small_rest_is_not_waited_for(pair: Pair) -> None:
    data = bytes(range(256)) * (LARGEST_REST // 256)

    pair.ours.sendall(data)
    pair.ours.sendall(b"end")  # stays behind the kept bytes
    kept = bytes(pair.ours.unsent)

    received = b""
    while len(received) < len(data) + 3 - len(kept):
        received += pair.peer.recv(1_000_000)
    assert received + kept == data + b"end"


def test_no_static_file_is_waited_for() -> None:
    """Clients without a token can request these files."""
    files = [(file.stat().st_size, file) for file in map(Path, static_files())]
    size, largest = max(files)

    assert len(files) > 100
    assert size + 8192 < LARGEST_REST, largest


def static_files() -> Iterator[str]:
    for finder in finders.get_finders():
        for path, storage in finder.list(None):
            yield storage.path(path)


def test_a_large_rest_is_waited_for(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "LEAST_RATE", 1_000_000_000)
    pair.ours.sending.left = 0.05
    with pytest.raises(BrokenPipeError, match="too slowly"):
        pair.ours.sendall(bytes(LARGEST_REST + 10_000_000))


def test_fast_client_does_not_extend_its_timeout(pair: Pair) -> None:
    pair.ours.receiving.waited(0, 1_000_000_000)
    assert pair.ours.receiving.left == pace.BODY_TIMEOUT
    pair.ours.receiving.waited(10, pace.LEAST_RATE)
    assert pair.ours.receiving.left == pace.BODY_TIMEOUT - 9


def test_a_reader_that_stops_is_not_given_time_for_all(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "LEAST_RATE", 100_000_000)
    pair.ours.sending.left = 0.01
    with pytest.raises(BrokenPipeError, match="too slowly"):
        pair.ours.sendall(bytes(100_000_000))  # a second for all of it
    assert (pair.ours.gettimeout() or 60) < 0.1


class Loop:
    """A worker's loop, without its processes and threads."""

    def __init__(self, **settings: Any) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        cfg = Config()
        for name, value in settings.items():
            cfg.set(name, value)
        self.worker = ServiceWorker(0, 0, [], None, 30, cfg, None)
        self.worker.poller = selectors.DefaultSelector()
        self.begun: list[bytes] = []
        self.worker._begin = lambda _conn, received: self.begun.append(received)  # type: ignore[method-assign]
        self.peers: list[socket.socket] = []

    def connect(self, sent: bytes = b"") -> socket.socket:
        peer = socket.create_connection(self.listener.getsockname(), 10)
        self.peers.append(peer)
        peer.sendall(sent)
        self.worker.accept(self.listener)
        self.turn()
        return peer

    def turn(self) -> None:
        self.worker.wait_for_and_dispatch_events(0.05)
        self.worker.murder_pending()

    def close(self) -> None:
        for conn in list(self.worker._connections):
            self.worker._drop(conn)
        for peer in [*self.peers, self.listener, self.worker.poller, self.worker.tmp]:
            peer.close()


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop(worker_connections=4, threads=1)
    yield loop
    loop.close()


def test_a_whole_request_gets_a_thread(loop: Loop) -> None:
    loop.connect(b"GET / HTTP/1.1\r\n\r\n")
    assert loop.begun == [b"GET / HTTP/1.1\r\n\r\n"]


def test_oldest_connection_is_closed_above_the_limit(loop: Loop) -> None:
    first, second = loop.connect(), loop.connect(b"GET")
    loop.connect()
    assert loop.worker.nr_conns == 3
    loop.connect()
    assert loop.worker.nr_conns == 3
    assert first.recv(1) == b""
    loop.connect()
    assert second.recv(100).startswith(b"HTTP/1.1 408 ")


def test_connections_that_linger_make_room(loop: Loop) -> None:
    ended = [loop.connect(b"GET") for _ in range(7)]

    # The worker has answered four and waits for their clients to close.
    assert (loop.worker.nr_conns, len(loop.worker._lingering)) == (3, 4)
    assert [peer.recv(13) for peer in ended[:4]] == [b"HTTP/1.1 408 "] * 4
    assert b"REQUEST_TIMEOUT" in ended[0].recv(1000)  # the whole answer, and then the end
    assert ended[0].recv(1) == b""


def test_number_of_lingering_connections_is_limited(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_MOST_LINGERING", 2)
    for _ in range(8):
        loop.connect(b"GET")

    assert (loop.worker.nr_conns, len(loop.worker._lingering)) == (3, 2)
    assert len(loop.worker._connections) == 5


def test_a_stopping_worker_waits_for_connections_that_linger(loop: Loop) -> None:
    for _ in range(5):
        loop.connect(b"GET")
    assert loop.worker.nr_conns == 3

    loop.worker.alive = False
    loop.worker._cap_keepalive(time.monotonic() + 60)
    assert loop.worker.nr_conns == 5
    loop.worker.murder_pending()
    assert len(loop.worker._waiting) == 3  # counting the others closes no connection


@pytest.mark.parametrize("number", EXHAUSTED)
def test_without_descriptors_a_lingering_connection_goes_first(loop: Loop, number: int) -> None:
    for _ in range(4):
        loop.connect(b"GET")
    assert len(loop.worker._lingering) == 1

    loop.worker.accept(Exhausted(number))
    assert (loop.worker.nr_conns, len(loop.worker._lingering)) == (3, 0)


class Exhausted:
    """A listener of a process without free descriptors or memory."""

    def __init__(self, number: int) -> None:
        self.number = number

    def accept(self) -> None:
        raise OSError(self.number, "exhausted")


@pytest.mark.parametrize("number", EXHAUSTED)
def test_without_descriptors_the_oldest_goes(loop: Loop, number: int) -> None:
    first = loop.connect()
    loop.worker.accept(Exhausted(number))
    assert first.recv(1) == b""
    loop.worker.accept(Exhausted(number))  # nothing is left to end


def test_unfinished_requests_have_a_budget(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_BUDGET", 1000)
    head = HEAD + b"Content-Length: 800\r\n\r\n"
    loop.connect()
    first = loop.connect(head + b"x" * 500)
    loop.connect(head + b"x" * 500)

    assert first.recv(100).startswith(b"HTTP/1.1 408 ")
    assert [pending.is_idle for pending in loop.worker._waiting.values()] == [True, False]
    assert loop.worker._buffered == len(head) + 500


def test_small_requests_do_not_extend_the_budget(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_BUDGET", 1000)
    small = [loop.connect(b"GET") for _ in range(2)]
    loop.connect(HEAD + b"Content-Length: 2000\r\n\r\n" + b"x" * 999)

    assert loop.worker._buffered == 0
    assert [peer.recv(13) for peer in small] == [b"HTTP/1.1 408 "] * 2


def test_complete_requests_without_a_thread_count_towards_the_budget(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_BUDGET", 1000)
    monkeypatch.setattr(worker, "_SMALL", 100)
    push = HEAD + b"Content-Length: 600\r\n\r\n" + b"x" * 600
    loop.connect(push)
    incomplete = loop.connect(HEAD)
    refused = loop.connect(push)
    answer = refused.recv(1000)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 3\r\n" in answer
    assert b"MEMORY_UNAVAILABLE" in answer
    assert len(loop.worker._waiting) == 1  # ending the incomplete request would not help

    fitting = HEAD + b"Content-Length: 280\r\n\r\n" + b"x" * 280
    loop.connect(fitting)
    assert incomplete.recv(13) == b"HTTP/1.1 408 "
    loop.connect(b"GET / HTTP/1.1\r\n\r\n")
    assert loop.begun == [push, fitting, b"GET / HTTP/1.1\r\n\r\n"]

    loop.worker._queued.clear()  # as the threads do
    loop.connect(push)
    assert loop.begun[3:] == [push]


def test_endless_headers_are_refused_without_a_thread(loop: Loop) -> None:
    loop.worker._largest_head = 1000
    peer = loop.connect(HEAD + b"X: " + b"x" * 1000)

    assert peer.recv(100).startswith(b"HTTP/1.1 431 ")
    assert loop.begun == []
    assert loop.worker._buffered == 0


def test_the_largest_valid_headers_are_awaited(loop: Loop) -> None:
    line = b"GET /" + b"x" * (loop.worker.cfg.limit_request_line - 14) + b" HTTP/1.1\r\n"
    field = b"X: " + b"x" * (loop.worker.cfg.limit_request_field_size - 5) + b"\r\n"
    head = b"\r\n" + line + field * loop.worker.cfg.limit_request_fields + b"\r"
    arriving = loop.worker._arrival(60)

    assert not arriving.add(head)
    assert not arriving.is_too_long
    assert arriving.add(b"\n")


def test_a_removed_header_does_not_count_towards_the_budget(loop: Loop) -> None:
    expecting = HEAD + b"Expect: 100-continue" + b" " * 1000 + b"\r\nContent-Length: 5\r\n\r\n"
    whole = loop.connect(expecting)
    assert whole.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    cut_off = loop.connect(expecting)
    whole.sendall(b"12345")
    cut_off.close()
    loop.turn()
    loop.turn()

    assert loop.worker._waiting == {}
    assert loop.worker._buffered == 0


def test_closed_connections_are_removed(loop: Loop) -> None:
    for peer in (loop.connect(), loop.connect()):
        peer.close()
    loop.turn()
    loop.turn()
    assert loop.worker.nr_conns == 0
    assert loop.worker._waiting == {}


def test_truncated_request_is_given_to_a_thread(loop: Loop) -> None:
    loop.connect(b"GET").shutdown(socket.SHUT_WR)
    loop.turn()
    assert loop.begun == [b"GET"]


def test_event_of_a_closed_connection_is_ignored(loop: Loop) -> None:
    loop.connect()
    (conn,) = loop.worker._waiting
    loop.worker._drop(conn)
    loop.worker._receive(conn, conn.sock)
    loop.worker._send(conn, conn.sock)
    loop.worker._drop(conn)  # twice
    assert loop.worker.nr_conns == 0


def test_failed_thread_closes_its_connection(loop: Loop) -> None:
    loop.connect()
    (conn,) = loop.worker._waiting
    loop.worker._forget(conn)
    failed: Future[bool] = Future()
    failed.set_exception(RuntimeError())
    loop.worker.finish_request(conn, failed)
    assert loop.worker.nr_conns == 0


def test_stopping_worker_waits_for_started_requests(loop: Loop) -> None:
    silent, begun = loop.connect(), loop.connect(b"GET")
    loop.worker._cap_keepalive(time.monotonic())
    loop.worker._next_sweep = 0
    loop.worker.murder_pending()
    assert silent.recv(1) == b""
    begun.sendall(b" / HTTP/1.1\r\n\r\n")
    loop.turn()
    assert loop.begun == [b"GET / HTTP/1.1\r\n\r\n"]


def hello(_environ: Any, start_response: Any) -> list[bytes]:
    """Answer as `/healthz` does."""
    start_response("200 OK", [("Content-Length", "2")])
    return [b"{}"]


class Running:
    """A worker whose own `run` serves a listener in a thread."""

    def __init__(self, **settings: Any) -> None:
        self.peers: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
        cfg = Config()
        for name, value in settings.items():
            cfg.set(name, value)
        self.worker: Any = ServiceWorker(
            0, os.getppid(), [self.listener], None, 30, cfg, Logger(cfg)
        )
        self.worker.wsgi = hello
        self.worker._probes = {probe: ThreadPoolExecutor(1) for probe in worker._PROBES}
        self.worker.tpool = self.worker.get_thread_pool()
        self.worker.poller = selectors.DefaultSelector()
        self.worker.method_queue.init()
        self.thread = threading.Thread(target=self.worker.run)

    def open(self, sent: bytes) -> socket.socket:
        peer = socket.create_connection(self.listener.getsockname(), 10)
        self.peers.append(peer)
        peer.sendall(sent)
        return peer

    def probe(self) -> bytes:
        with socket.create_connection(self.listener.getsockname(), 10) as client:
            client.settimeout(10)
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            return client.recv(15)

    def close(self) -> None:
        for peer in self.peers:
            peer.close()
        self.worker.alive = False
        if self.thread.ident is not None:
            self.thread.join(30)
        for pool in self.worker._probes.values():
            pool.shutdown()
        self.worker.tmp.close()


@pytest.fixture
def running() -> Iterator[Running]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, limits[1]), limits[1]))
    running = Running()
    running.thread.start()
    yield running
    running.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize(
    "sent", [b"", b"GET /healthz HTTP/1.1\r\nX-Half: "], ids=["nothing", "half"]
)
def test_thousands_of_idle_connections_do_not_silence_a_worker(
    running: Running, sent: bytes
) -> None:
    for _ in range(2500):
        running.open(sent)

    assert [running.probe() for _ in range(20)] == [b"HTTP/1.1 200 OK"] * 20
    assert running.worker.nr_conns <= 1000
    assert len(running.worker._connections) <= 1000 + worker._MOST_LINGERING


REQUEST = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def test_pipelined_requests_do_not_exclude_new_connections(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, is_full = threading.Event(), threading.Event()

    def slow(environ: Any, start_response: Any) -> list[bytes]:
        began.set()
        is_full.wait(10)
        time.sleep(0.01)
        return hello(environ, start_response)

    monkeypatch.setattr(running.worker, "wsgi", slow)
    running.open(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 2000)
    began.wait(10)
    running.worker.worker_connections = 1
    wait_until(lambda: not running.worker._accepting)
    excluded = running.open(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    is_full.set()

    excluded.settimeout(10)
    assert excluded.recv(15) == b"HTTP/1.1 200 OK"


def test_a_refused_thread_does_not_end_the_worker(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a limit of threads, such as `pids_limit`, a request waits for an existing thread."""
    began, goes_on = threading.Event(), threading.Event()

    def slow(environ: Any, start_response: Any) -> list[bytes]:
        began.set()
        goes_on.wait(10)
        return hello(environ, start_response)

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    running.worker.cfg.set("threads", 2)
    running.worker.tpool = running.worker.get_thread_pool()
    running.probe()  # starts the thread of probes
    monkeypatch.setattr(running.worker, "wsgi", slow)
    peers = [running.open(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")]
    began.wait(10)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    peers.append(running.open(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
    wait_until(lambda: running.worker.tpool._work_queue.qsize() == 1)
    goes_on.set()

    for peer in peers:
        peer.settimeout(10)
        assert peer.recv(15) == b"HTTP/1.1 200 OK"
    assert running.probe() == b"HTTP/1.1 200 OK"


def test_requests_with_a_thread_do_not_count_towards_the_budget(running: Running) -> None:
    peer = running.open(HEAD + b"Content-Length: 20000\r\n\r\n" + b"x" * 20000)
    assert peer.recv(15) == b"HTTP/1.1 200 OK"
    wait_until(lambda: not running.worker._queued)


@pytest.fixture
def stopping() -> Iterator[Running]:
    """A worker with room for two connections, whose stop signal arrived before it began to run."""
    stopping = Running(worker_connections=2, threads=1, graceful_timeout=10)
    stopping.worker.alive = False
    yield stopping
    stopping.close()


def test_a_stop_before_the_first_turn_answers_waiting_requests(stopping: Running) -> None:
    peer = stopping.open(REQUEST)

    stopping.worker.run()

    assert peer.recv(15) == b"HTTP/1.1 200 OK"
    assert stopping.listener.fileno() == -1


def test_a_stop_at_the_limit_disables_twice(stopping: Running) -> None:
    """The loop's own turn disables first when the worker is full, and the end of `run` again."""
    worker = stopping.worker
    worker.set_accept_enabled(True)
    worker.set_accept_enabled(False)
    worker.set_accept_enabled(False)

    assert stopping.listener.fileno() == -1


def test_a_stopping_worker_accepts_up_to_its_limit(stopping: Running) -> None:
    for _ in range(5):
        stopping.open(b"GET / HTTP/1.1\r\n")
    worker = stopping.worker
    worker.set_accept_enabled(True)
    worker.set_accept_enabled(False)

    assert len(worker._connections) == 2
    for conn in list(worker._connections):
        worker._drop(conn)
