"""Endless, slow or compressed responses of the provider do not block requests."""

import contextlib
import gzip
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import requests

pytest.importorskip("allauth")

from infra_service.sign_on import bounded_answers
from infra_service.sign_on.bounded_answers import MAX_BYTES, BoundedAdapter

Answer = Callable[[BaseHTTPRequestHandler], Any]


@contextlib.contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """Run a server that always sends this response, and yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                answer(self)

        def log_message(self, *_: Any) -> None:
            """Suppress the log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def sized(body: bytes, **headers: str) -> Answer:
    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        for name, value in {"length": str(len(body)), **headers}.items():
            handler.send_header(f"Content-{name}", value)
        handler.end_headers()
        handler.wfile.write(body)

    return send


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 65536)


def dripping(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    stop = threading.Event()
    while not stop.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def get(answer: Answer) -> requests.Response:
    with answering(answer) as url, requests.Session() as session:
        session.mount("http://", BoundedAdapter())
        return session.get(url, timeout=5)


def test_an_answer_is_read_whole() -> None:
    body = b'{"issuer": "https://id.example.com"}'.ljust(MAX_BYTES)

    assert get(sized(body)).content == body


def test_a_status_is_kept() -> None:
    answer = get(lambda handler: handler.send_error(503))

    assert (answer.status_code, answer.reason) == (503, "Service Unavailable")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (sized(b" " * (MAX_BYTES + 1)), "longer than 262144 bytes"),
        (endless, "longer than 262144 bytes"),
        (sized(b"x", length="100"), "IncompleteRead"),
        (sized(gzip.compress(b" " * 10_000_000), encoding="gzip"), "is compressed"),
    ],
)
def test_oversized_truncated_and_compressed_responses_are_rejected(
    answer: Answer, why: str
) -> None:
    with pytest.raises(requests.ConnectionError, match=why):
        get(answer)


def test_a_body_must_arrive_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_answers, "SECONDS", 0.1)

    with pytest.raises(requests.ConnectionError, match=r"longer than 0\.1 seconds"):
        get(dripping)
