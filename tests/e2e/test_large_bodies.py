"""Documents of 64 MiB: accepted, refused before they are read, and their memory."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.backend import Backend, document, incompressible
from tests.e2e.database import snapshot
from tests.e2e.wire import Wire
from tests.support.server import LiveServer, live_server

MIB = 1024 * 1024
LIMIT = 64 * MIB
MEMORY = 4  # times the body


def padded(size: int) -> bytes:
    """Return a document of exactly this size that compresses well."""
    bare = len(document(1, filler=""))
    return document(1, filler="x" * (size - bare))


def numerous(size: int) -> bytes:
    """Return a document of nearly this size, of many small values."""
    resource = {"mode": "managed", "type": "t", "instances": [{"attributes": {"id": "i", "n": 1}}]}
    start, end = document(1, resources=["here"]).split(b'"here"')
    one = json.dumps(resource, indent=2).encode() + b",\n"
    return start + one * ((size - 1000) // len(one)) + json.dumps(resource).encode() + end


class Memory:
    """The peak memory of a server's workers, over what they had before."""

    def __init__(self, server: LiveServer) -> None:
        self.workers = server.workers()
        self.baseline = {pid: self._read(pid, "VmRSS") for pid in self.workers}

    def reset(self) -> None:
        """Reset the kernel's peak counter."""
        for pid in self.workers:
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    def peak(self) -> int:
        """Return the largest growth of a worker, in bytes."""
        return max(self._read(pid, "VmHWM") - self.baseline[pid] for pid in self.workers)

    @staticmethod
    def _read(pid: int, name: str) -> int:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(name)


@pytest.fixture(scope="module")
def roomy() -> Iterator[tuple[LiveServer, str, Memory]]:
    """A server that has served only small requests, as a baseline for its memory."""
    with live_server() as server:
        token = server.token("state:read", "state:write")
        for _ in range(20):
            backend = Backend(server, token)
            assert backend.push(document(1)).status == 200
            assert backend.get().status == 200
        yield server, token, Memory(server)


@pytest.mark.parametrize("make", [padded, incompressible, numerous])
def test_memory_of_64_mib_suffices(roomy: tuple[LiveServer, str, Memory], make: object) -> None:
    server, token, memory = roomy
    assert callable(make)
    body = make(LIMIT)
    backend = Backend(server, token)
    memory.reset()
    started = time.monotonic()
    assert backend.push(body).status == 200
    push, pushed = memory.peak() / len(body), time.monotonic() - started
    memory.reset()
    assert backend.get().body == body
    plain = memory.peak() / len(body)
    memory.reset()
    assert backend.send("GET", Accept_Encoding="gzip").status == 200
    packed = memory.peak() / len(body)
    line = f"push {push:.2f} ({pushed:.2f} s), pull {plain:.2f}, pull of gzip {packed:.2f}"
    os.write(1, f"\n{make.__name__}, {len(body) / MIB:.1f} MiB, times the body: {line}\n".encode())
    assert push <= MEMORY
    assert plain <= MEMORY
    assert packed <= MEMORY


def test_chunked_body_of_64_mib_is_accepted(roomy: tuple[LiveServer, str, Memory]) -> None:
    server, token, memory = roomy
    body, backend = padded(LIMIT), Backend(server, token)
    memory.reset()
    with Wire(backend, timeout=60) as wire:
        wire.head("POST", Transfer_Encoding="chunked")
        wire.chunks([body])
        assert wire.answer().status == 200
    assert memory.peak() <= MEMORY * len(body)
    assert backend.get().body == body


def assert_refused(backend: Backend, wire: Wire) -> None:
    answer = wire.answer()
    assert (answer.status, answer.reason) == (413, "REQUEST_TOO_LARGE")
    metadata = answer.json()["error"]["details"][0]["metadata"]
    assert metadata == {"limit_bytes": str(LIMIT)}
    assert backend.get().status == 404
    assert snapshot(backend.server, backend).states == []


@pytest.mark.parametrize("length", [LIMIT + 1, 10**15])
def test_body_over_the_limit_is_rejected_unread(backend: Backend, length: int) -> None:
    with Wire(backend) as wire:
        wire.head("POST", Content_Length=length)
        assert_refused(backend, wire)  # although no byte of it was sent


def test_body_over_the_limit_is_rejected_before_100_continue(backend: Backend) -> None:
    with Wire(backend) as wire:
        wire.head("POST", Content_Length=LIMIT + 1, Expect="100-continue")
        assert wire.line().startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    "credentials",
    [b"", b"Authorization: Bearer isp_wrong\r\n", b"Authorization: Basic eDp5\r\n"],
    ids=["none", "a wrong token", "a wrong password"],
)
def test_a_stranger_is_refused_before_100_continue(backend: Backend, credentials: bytes) -> None:
    """The server requests no byte of its body, and closes the connection."""
    request = (
        b"POST %b HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Length: %d\r\n%bExpect: 100-continue\r\n\r\n"
    )
    with Wire(backend) as wire:
        wire.send(request % (backend.path.encode(), 10 * MIB, credentials))
        assert wire.line().startswith(b"HTTP/1.1 401 ")
        while wire.line() != b"\r\n":
            pass
        assert b"100 Continue" not in wire.received.read()
    with Wire(backend) as wire:
        wire.send(request % (backend.path.encode(), 10 * MIB, credentials), b"x" * 1000)
        assert wire.answer().status == 401


@pytest.mark.parametrize("chunked", [False, True], ids=["a length", "chunks"])
def test_authorized_client_gets_100_continue(backend: Backend, *, chunked: bool) -> None:
    document = padded(2 * MIB)
    with Wire(backend) as wire:
        framing = {"Transfer_Encoding": "chunked"} if chunked else {"Content_Length": len(document)}
        wire.head("POST", **framing, Expect="100-continue")
        assert wire.line() == b"HTTP/1.1 100 Continue\r\n"
        assert wire.line() == b"\r\n"
        if chunked:
            wire.chunks([document])
        else:
            wire.send(document)
        assert wire.answer().status == 200
        # The connection stays open, and 100 Continue is sent once.
        wire.head("GET")
        assert wire.answer().body == document


def test_response_to_an_unread_body_announces_the_end_of_the_connection(backend: Backend) -> None:
    with Wire(backend) as wire:
        wire.head("LOCK", Content_Length=2 * MIB)
        wire.send(b"x" * MIB)
        answer = wire.answer()
        assert (answer.status, answer.headers["Connection"]) == (413, "close")
        assert wire.received.read() == b""
    with Wire(backend) as wire:
        wire.head("POST", Content_Length=2 * MIB)
        wire.send(padded(2 * MIB))
        answer = wire.answer()
        assert (answer.status, answer.headers["Connection"]) == (200, "keep-alive")


def test_rejected_chunks_that_are_not_read_end_the_connection(backend: Backend) -> None:
    with Wire(backend) as wire:
        wire.head("POST", "/nosuch", Transfer_Encoding="chunked")
        wire.chunks([b"{}"], end=b"")

        answer = wire.answer()

    assert (answer.status, answer.headers["Connection"]) == (411, "close")


def test_chunked_body_over_the_limit_is_rejected(backend: Backend) -> None:
    with Wire(backend, timeout=60) as wire:
        wire.head("POST", Transfer_Encoding="chunked")
        block = b" " * MIB
        wire.chunks([block] * 64, end=b"1\r\n \r\n0\r\n\r\n")
        assert_refused(backend, wire)


def test_client_that_sends_before_reading_gets_the_rejection(backend: Backend) -> None:
    """Like most clients; the answer is available when they start to read."""
    with Wire(backend) as wire:
        wire.head("POST", Content_Length=LIMIT + 1)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            wire.send(padded(LIMIT + 1))
        assert_refused(backend, wire)


def test_lock_info_has_a_small_limit(backend: Backend) -> None:
    with Wire(backend) as wire:
        wire.head("LOCK", Content_Length=LIMIT)
        assert wire.answer().status == 413
    assert backend.holder() is None
