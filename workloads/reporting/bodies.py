"""Reading a report's body, plain or gzip'd, within one limit for what travels and what unfolds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from isal import igzip_lib, isal_zlib

from infra_service.lib.api import memory
from infra_service.lib.api.bodies import BodyTooLarge, blocks
from workloads.reporting.errors import ContentEncodingUnsupported, InvalidGzip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.http import HttpRequest

_GZIP: Final = 31  # zlib's window bits for "gzip, and nothing else"
_STEP: Final = 1024 * 1024
#: Bytes that a report holds for each of its own, once it is decoded.
FACTOR: Final = 8
#: Each takes memory and time of its own, however empty it is. bgzip makes one for each 64 KiB.
_MOST_MEMBERS: Final = 1000


def read_body(request: HttpRequest, limit: int) -> bytearray:
    """Return the body, unfolded.

    Raises:
        BodyTooLarge, BodyIncomplete: as of ``infra_service.lib.api.bodies.blocks``; the limit is of
            the unfolded bytes.
        ContentEncodingUnsupported, InvalidGzip: it is compressed otherwise, or damaged.
    """
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip"}:
        raise ContentEncodingUnsupported
    sent = blocks(request, limit)
    body = bytearray()
    for block in _unfolded(sent) if encoding.endswith("gzip") else sent:
        memory.take(FACTOR * len(block))
        body += block
        if len(body) > limit:
            raise BodyTooLarge(limit)
    return body


def _unfolded(sent: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what gzip'd blocks hold, a step at a time: a few bytes may stand for gigabytes."""
    member = isal_zlib.decompressobj(wbits=_GZIP)
    members = 1
    for block in sent:
        rest = block
        while rest:
            if member.eof:  # gzip'd files may be strung together (RFC 1952 §2.2)
                members += 1
                if members > _MOST_MEMBERS:
                    raise InvalidGzip
                member = isal_zlib.decompressobj(wbits=_GZIP)
            try:
                yield member.decompress(rest, _STEP)
            except igzip_lib.IsalError as error:  # type: ignore[misc]  # its stub says that a class is an instance
                raise InvalidGzip from error
            rest = member.unused_data if member.eof else member.unconsumed_tail
    if not member.eof:
        raise InvalidGzip
