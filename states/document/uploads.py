"""Read pushed documents from request bodies."""

from __future__ import annotations

import base64
import codecs
import hashlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.conf import settings

from infra_service.lib.api import memory
from infra_service.lib.api.bodies import BodyTooLarge, blocks
from states import metrics
from states.document import sealing
from states.errors import ContentMd5Mismatch, InvalidDocument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest

    from states.document.sealing import Head


#: Bytes of memory for a push per byte of the document. They include the received document, the
#: compressed document, the encrypted document, and the data for the database.
_FACTOR: Final = 4
#: Maximum bytes of an envelope per byte of its document. It contains the document and Terraform's
#: JSON form of it, both in base64.
_ENVELOPE: Final = 3


@dataclass(frozen=True, slots=True)
class Upload:
    """A checked and compressed document. ``md5`` and ``size_bytes`` describe the original bytes."""

    head: Head
    md5: str
    size_bytes: int
    gzipped: bytes

    @classmethod
    def of(cls, document: bytes | bytearray, md5: str | None = None) -> Upload:
        """Return the upload of this document. Compute the digest unless it is given.

        Raises:
            InvalidDocument: the document is not a JSON object, or its serial or lineage is invalid.
        """
        if md5 is None:
            md5 = hashlib.md5(document, usedforsecurity=False).hexdigest()
        head = sealing.read_head(document)
        return cls(head, md5, len(document), sealing.compress(document))


def read_document(request: HttpRequest) -> Upload:
    """Read a pushed document.

    Raises:
        BodyTooLarge, BodyIncomplete, ContentMd5Mismatch, InvalidDocument: nothing is stored.
    """
    body = bytearray()
    digest = hashlib.md5(usedforsecurity=False)
    utf8 = codecs.getincrementaldecoder("utf-8")()
    # The announced size must fit into the budget, but memory is reserved as bytes arrive. A client
    # that announces a size without sending data therefore cannot block other clients.
    announced = int(request.META.get("CONTENT_LENGTH") or 0)
    if announced <= settings.STATE_MAX_BYTES:
        memory.demand(_FACTOR * announced)
    with demanding_utf8():
        for block in blocks(request, settings.STATE_MAX_BYTES):  # while the next block arrives
            memory.reserve(_FACTOR * len(block))
            body += block
            digest.update(block)
            utf8.decode(block)
        utf8.decode(b"", final=True)
    expected = request.META.get("HTTP_CONTENT_MD5")
    if expected is not None and _base64(expected) != digest.digest():
        raise ContentMd5Mismatch
    metrics.PUSHED_BYTES.inc(len(body))
    upload = Upload.of(body, digest.hexdigest())
    memory.release_memory(_FACTOR * (len(body) - len(upload.gzipped)))
    return upload


def read_envelope(request: HttpRequest) -> bytearray:
    """Read a body that contains a document in base64, within the memory budget.

    Raises:
        BodyTooLarge, BodyIncomplete: nothing is stored.
    """
    body = bytearray()
    for block in blocks(request, _ENVELOPE * settings.STATE_MAX_BYTES):
        memory.reserve(len(block))
        body += block
    return body


def drop_envelope(request: HttpRequest) -> None:
    """Receive and discard a body that may be as large as an envelope.

    Raises:
        BodyTooLarge, BodyIncomplete: see ``bodies.blocks``.
    """
    for _block in blocks(request, _ENVELOPE * settings.STATE_MAX_BYTES):
        pass


def of_envelope(document: bytes) -> Upload:
    """Return the upload of a document from an envelope.

    Raises:
        BodyTooLarge, InvalidDocument: nothing is stored.
    """
    if len(document) > settings.STATE_MAX_BYTES:
        raise BodyTooLarge(settings.STATE_MAX_BYTES)
    memory.reserve((1 + _FACTOR) * len(document))
    with demanding_utf8():
        document.decode()
    metrics.PUSHED_BYTES.inc(len(document))
    return Upload.of(document)


@contextmanager
def demanding_utf8() -> Iterator[None]:
    """Reject invalid UTF-8. RFC 8259 §8.1 requires UTF-8, which msgspec does not check.

    Raises:
        InvalidDocument: the text is not UTF-8.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        raise InvalidDocument("The document is not valid UTF-8.") from error


def _base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # also for a header that is not ASCII
        return None
