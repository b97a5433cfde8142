"""Reading a request's body: whole or not at all, within a limit, holding no database connection.

Django's ``request.body`` knows neither chunked bodies nor a body that ends too soon.
"""

from __future__ import annotations

import base64
import codecs
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import connection
from gunicorn.http.errors import ParseException

from states import documents
from states.errors import BodyIncomplete, BodyTooLarge, ContentMd5Mismatch, InvalidDocument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest

    from states.documents import Head

_BLOCK: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Upload:
    """A pushed document, checked and ready to be stored. ``md5`` and size are of its bytes."""

    head: Head
    md5: str
    size_bytes: int
    gzipped: bytes


def read_document(request: HttpRequest) -> Upload:
    """Read a pushed document.

    Raises:
        BodyTooLarge, BodyIncomplete, ContentMd5Mismatch, InvalidDocument: nothing is stored.
    """
    body = bytearray()
    digest = hashlib.md5(usedforsecurity=False)
    # RFC 8259 §8.1 demands UTF-8, which msgspec does not check in what it skips.
    utf8 = codecs.getincrementaldecoder("utf-8")()
    try:
        for block in blocks(request, settings.STATE_MAX_BYTES):  # while the next one travels
            body += block
            digest.update(block)
            utf8.decode(block)
        utf8.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise InvalidDocument("The document is not valid UTF-8.") from error
    expected = request.headers.get("Content-MD5")
    if expected is not None and _base64(expected) != digest.digest():
        raise ContentMd5Mismatch
    head = documents.read_head(body)
    return Upload(head, digest.hexdigest(), len(body), documents.compress(body))


def read_body(request: HttpRequest, limit: int) -> bytes:
    """Read a short body; the errors are those of ``blocks``."""
    return b"".join(blocks(request, limit))


def blocks(request: HttpRequest, limit: int) -> Iterator[bytes]:
    """Yield the body, with a Content-Length or chunked.

    Raises:
        BodyTooLarge: more than ``limit`` bytes; with a Content-Length none of them is read.
        BodyIncomplete: the client went away, or its chunks are damaged.
    """
    release_connection()
    chunked = "HTTP_TRANSFER_ENCODING" in request.META
    length = None if chunked else int(request.META.get("CONTENT_LENGTH") or 0)
    if length is not None and length > limit:
        raise BodyTooLarge(limit)
    # Django takes a body without Content-Length for empty; the server knows where its chunks end.
    stream = request.META["wsgi.input"] if chunked else request
    received = 0
    try:
        while block := stream.read(_BLOCK):
            received += len(block)
            if received > limit:
                raise BodyTooLarge(limit)
            yield block
    except (OSError, ParseException) as error:
        raise BodyIncomplete from error
    if length is not None and received != length:
        raise BodyIncomplete


def release_connection() -> None:
    """Give the connection back to its pool, or a few slow uploads keep everybody else waiting."""
    if connection.settings_dict["OPTIONS"].get("pool") and not connection.in_atomic_block:
        connection.close()


def _base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # also of a header that is not ASCII
        return None
