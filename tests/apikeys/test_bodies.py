"""Reading a request body. Behaviour with real sockets is tested in tests/e2e."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.http import HttpRequest
from django.test import RequestFactory
from gunicorn.http.errors import InvalidChunkSize

from infra_service.lib.api import bodies
from infra_service.lib.api.bodies import BodyIncomplete, BodyTooLarge


def chunked(stream: Any) -> HttpRequest:
    """Return a chunked request as gunicorn passes it: no length, and a stream that ends."""
    request = RequestFactory().post("/")
    del request.META["CONTENT_LENGTH"]
    request.META["HTTP_TRANSFER_ENCODING"] = "chunked"
    request.META["wsgi.input"] = stream
    return request


class BrokenStream(io.BytesIO):
    """A body that breaks off after its first block."""

    def __init__(self, error: Exception) -> None:
        super().__init__(b"half")
        self.error = error

    def read(self, size: int | None = -1, /) -> bytes:
        block = super().read(size)
        if block:
            return block
        raise self.error


def test_chunked_body_is_rejected() -> None:
    assert bodies.read_body(chunked(io.BytesIO(b"{}")), limit=2) == b"{}"


def test_a_chunked_body_has_a_limit_too() -> None:
    with pytest.raises(BodyTooLarge):
        bodies.read_body(chunked(io.BytesIO(b"{} ")), limit=2)


@pytest.mark.parametrize("error", [OSError("gone"), InvalidChunkSize(b"x")])
def test_truncated_body_is_rejected(error: Exception) -> None:
    with pytest.raises(BodyIncomplete):
        bodies.read_body(chunked(BrokenStream(error)), limit=100)


def test_short_body_is_rejected() -> None:
    request = RequestFactory().post("/", b"half", "application/json")
    request.META["CONTENT_LENGTH"] = "5"

    with pytest.raises(BodyIncomplete):
        bodies.read_body(request, limit=100)


def test_missing_body_is_rejected() -> None:
    assert bodies.read_body(RequestFactory().generic("UNLOCK", "/"), limit=100) == b""
