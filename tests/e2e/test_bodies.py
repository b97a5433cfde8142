"""Bodies that are too short, too long, chunked or missing."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator

import pytest

from tests.e2e.backend import Backend, document, lock_info
from tests.e2e.database import problems, versions_of
from tests.e2e.wire import Wire
from tests.support.server import LiveServer

BODY = document(2, filler="x" * 300_000)
CHUNKED = {"Transfer_Encoding": "chunked"}


@pytest.fixture
def stored(backend: Backend) -> Iterator[Backend]:
    """A state with a version; the test may harm neither it nor the service."""
    assert backend.push(document(1)).status == 200
    yield backend
    assert backend.get().body == document(1)
    versions = versions_of(backend)
    assert [version["number"] for version in versions] == [1]
    assert backend.push(document(2)).status == 200
    assert problems(backend) == []


def parts_of(body: bytes, size: int) -> list[bytes]:
    return [body[start : start + size] for start in range(0, len(body), size)]


def assert_stored(backend: Backend, wire: Wire) -> None:
    answer = wire.answer()
    assert (answer.status, answer.body) == (200, b"")
    assert backend.get().body == BODY


@pytest.mark.parametrize("sent", [0, 1, 100_000, len(BODY) - 1])
def test_client_goes_away_in_the_middle(stored: Backend, sent: int) -> None:
    with Wire(stored) as wire:
        wire.head("POST", Content_Length=len(BODY))
        wire.send(BODY[:sent])
        time.sleep(0.05)


@pytest.mark.parametrize("sent", [0, 1, 100_000, len(BODY) - 1])
def test_body_is_shorter_than_its_content_length(stored: Backend, sent: int) -> None:
    with Wire(stored) as wire:
        wire.head("POST", Content_Length=len(BODY))
        wire.send(BODY[:sent])
        wire.end_of_input()
        answer = wire.answer()
        assert (answer.status, answer.reason) == (400, "BODY_INCOMPLETE")
        assert wire.is_closed()


def test_truncated_body_is_not_stored_as_a_document(stored: Backend) -> None:
    """Even complete JSON is not stored if Content-Length is larger."""
    with Wire(stored) as wire:
        wire.head("POST", Content_Length=len(document(2)) + 1)
        wire.send(document(2))
        wire.end_of_input()
        assert wire.answer().reason == "BODY_INCOMPLETE"


def test_body_is_longer_than_its_content_length(stored: Backend) -> None:
    """The rest counts as the next request, which is invalid."""
    with Wire(stored) as wire:
        wire.head("POST", Content_Length=len(BODY) - 10)
        wire.send(BODY)
        answer = wire.answer()
        assert (answer.status, answer.reason) == (400, "INVALID_DOCUMENT")


def test_next_request_follows_the_body(backend: Backend) -> None:
    with Wire(backend) as wire:
        wire.head("POST", Content_Length=len(BODY))
        wire.send(BODY)
        wire.head("GET")
        assert_stored(backend, wire)
        assert wire.answer().body == BODY


@pytest.mark.parametrize("size", [1_000, 65_536, 1_000_000])
def test_chunked_body_is_accepted(backend: Backend, size: int) -> None:
    with Wire(backend) as wire:
        wire.head("POST", **CHUNKED)
        wire.chunks(parts_of(BODY, size))
        assert_stored(backend, wire)


def test_chunks_with_extensions_and_trailers_are_accepted(backend: Backend) -> None:
    with Wire(backend) as wire:
        wire.head("POST", **CHUNKED)
        wire.send(b"%X;name=value\r\n" % len(BODY), BODY, b"\r\n0\r\nChecked: yes\r\n\r\n")
        assert_stored(backend, wire)


@pytest.mark.parametrize(
    "damage",
    [
        b"zz\r\n{}\r\n0\r\n\r\n",  # an invalid size
        b"-2\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}XX0\r\n\r\n",  # no line break after the data
        b"2\r\n{}\r\n",  # no last chunk
        b"ff\r\n{}",  # less than announced
        b"2\r\n{}\r\n0\r\n",  # no end of the trailers
        b"",
    ],
)
def test_damaged_chunks_are_rejected(stored: Backend, damage: bytes) -> None:
    with Wire(stored) as wire:
        wire.head("POST", **CHUNKED)
        wire.send(damage)
        wire.end_of_input()
        answer = wire.answer()
        assert (answer.status, answer.reason) == (400, "BODY_INCOMPLETE")
        assert wire.is_closed()


def test_both_lengths_are_refused(stored: Backend) -> None:
    """Ambiguous lengths allow request smuggling (RFC 9112 §6.1)."""
    with Wire(stored) as wire:
        wire.head("POST", Content_Length=2, **CHUNKED)
        wire.send(b"2\r\n{}\r\n0\r\n\r\n")
        assert wire.received.read(12) == b"HTTP/1.1 400"


@pytest.mark.parametrize("length", ["x", "-1", "1, 2", "+5"])
def test_invalid_content_length_is_rejected(stored: Backend, length: str) -> None:
    with Wire(stored) as wire:
        wire.head("POST", Content_Length=length)
        assert wire.received.read(12) == b"HTTP/1.1 400"


def test_expect_continue_is_answered(backend: Backend) -> None:
    with Wire(backend) as wire:
        wire.head("POST", Content_Length=len(BODY), Expect="100-continue")
        assert wire.line() == b"HTTP/1.1 100 Continue\r\n"
        assert wire.line() == b"\r\n"
        wire.send(BODY)
        assert_stored(backend, wire)


def test_eight_stalled_uploads_do_not_block_other_requests(
    live: LiveServer, stored: Backend, token: str
) -> None:
    other = Backend(live, token)
    wires = [Wire(stored) for _ in range(8)]
    try:
        for wire in wires:
            wire.head("POST", Content_Length=len(BODY))
            wire.send(BODY[: len(BODY) // 2])
        time.sleep(0.1)
        started = time.monotonic()
        for serial in range(1, 11):
            assert other.push(document(serial)).status == 200
            assert other.get().status == 200
        assert time.monotonic() - started < 20  # the uploads never end
    finally:
        for wire in wires:
            wire.socket.close()


class TestUnlock:
    """An empty UNLOCK is a force-unlock; an UNLOCK whose body was lost is not."""

    @pytest.fixture(autouse=True)
    def lock_id(self, backend: Backend) -> str:
        lock_id = str(uuid.uuid4())
        assert backend.lock(lock_id).status == 200
        return lock_id

    def test_chunked_empty_needs_the_right(self, backend: Backend, writer_token: str) -> None:
        with Wire(backend.with_token(writer_token)) as wire:
            wire.head("UNLOCK", **CHUNKED)
            wire.chunks([])
            answer = wire.answer()
        assert (answer.status, answer.reason) == (403, "SCOPE_INSUFFICIENT")
        assert backend.holder() is not None

    @pytest.mark.parametrize(("method", "suffix"), [("UNLOCK", ""), ("DELETE", "/lock")])
    def test_empty_chunked_body_is_rejected(
        self, backend: Backend, method: str, suffix: str
    ) -> None:
        with Wire(backend) as wire:
            wire.head(method, suffix, **CHUNKED)
            wire.chunks([])
            assert wire.answer().status == 200
        assert backend.holder() is None

    def test_chunked_body_with_another_id_is_rejected(self, backend: Backend) -> None:
        with Wire(backend) as wire:
            wire.head("UNLOCK", **CHUNKED)
            wire.chunks([json.dumps(lock_info(str(uuid.uuid4()))).encode()])
            answer = wire.answer()
        assert (answer.status, answer.reason) == (409, "LOCK_NOT_HELD")
        assert backend.holder() is not None

    def test_chunked_body_with_its_id_is_accepted(
        self, backend: Backend, lock_id: str, writer_token: str
    ) -> None:
        with Wire(backend.with_token(writer_token)) as wire:
            wire.head("UNLOCK", **CHUNKED)
            wire.chunks(parts_of(json.dumps(lock_info(lock_id)).encode(), 7))
            assert wire.answer().status == 200
        assert backend.holder() is None

    @pytest.mark.parametrize("headers", [CHUNKED, {"Content_Length": 200}])
    def test_lost_body_is_rejected(self, backend: Backend, headers: dict[str, object]) -> None:
        with Wire(backend) as wire:
            wire.head("UNLOCK", **headers)
            wire.end_of_input()
            answer = wire.answer()
        assert (answer.status, answer.reason) == (400, "BODY_INCOMPLETE")
        assert backend.holder() is not None

    @pytest.mark.parametrize("body", [b" ", b"null", b"{}", b"\0"])
    def test_body_without_lock_id(self, backend: Backend, body: bytes) -> None:
        answer = backend.send("UNLOCK", body)
        assert (answer.status, answer.reason) == (400, "INVALID_LOCK_INFO")
        assert backend.holder() is not None
