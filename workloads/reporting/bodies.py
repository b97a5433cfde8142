"""Read the body of a report, plain or gzipped. One limit applies before and after decompression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from isal import igzip_lib, isal_zlib

from infra_service.lib.api import memory
from infra_service.lib.api.bodies import BodyTooLarge, blocks
from workloads.reporting.errors import ContentEncodingUnsupported, InvalidGzip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.http import HttpRequest

_GZIP: Final = 31  # zlib's window bits for only gzip
_STEP: Final = 1024 * 1024
#: Bytes of memory that a decoded report requires per byte of its body.
FACTOR: Final = 8
#: Bytes of memory that each element of a list or object requires, however short its text is.
_ELEMENT: Final = 72
#: The maximum number of gzip members. Each member costs memory and time, even if it is empty. bgzip
#: writes one member per 64 KiB.
_MOST_MEMBERS: Final = 1000


def read_body(request: HttpRequest, limit: int) -> bytearray:
    """Return the decompressed body.

    Raises:
        BodyTooLarge, BodyIncomplete: see ``infra_service.lib.api.bodies.blocks``. The limit also
            applies to the decompressed bytes.
        ContentEncodingUnsupported, InvalidGzip: the encoding is unknown, or the data is damaged.
    """
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip"}:
        raise ContentEncodingUnsupported
    sent = blocks(request, limit)
    body = bytearray()
    for block in _unfolded(sent) if encoding.endswith("gzip") else sent:
        memory.reserve(max(FACTOR * len(block), _ELEMENT * block.count(b",")))
        body += block
        if len(body) > limit:
            raise BodyTooLarge(limit)
    return body


def _unfolded(sent: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress blocks in steps, because a few bytes may decompress to gigabytes."""
    member = isal_zlib.decompressobj(wbits=_GZIP)
    members = 1
    for block in sent:
        rest = block
        while rest:
            if member.eof:  # gzip files may be concatenated (RFC 1952 §2.2)
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
