"""Read the head of a document, and encrypt and decrypt stored documents.

A stored document is compressed with gzip and encrypted (``infra_service.lib.encryption``). The
associated data contains the ids of the state and the version, so a document that was moved to
another row cannot be decrypted. The version's number is in the time field of the gzip header, which
the previous release can read. Both releases run during an upgrade.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from isal import igzip, isal_zlib

from infra_service.lib import encryption
from states.errors import DocumentDamaged, DocumentKeyMissing, InvalidDocument
from states.models import MAX_SERIAL

if TYPE_CHECKING:
    import uuid

    from infra_service.lib.encryption import Encrypted

_GZIP: Final = 31  # zlib's value for gzip with the largest window
_TIME: Final = slice(4, 8)  # in the gzip header (RFC 1952 §2.3.1); 0 means unknown
MAX_LINEAGE: Final = 255


_NULL: Final = msgspec.Raw(b"null")
#: The format version of ``.terraform/terraform.tfstate``, and of states before Terraform 0.12.
_BACKEND_FORMAT: Final = msgspec.Raw(b"3")
_BEGIN_NUMBERS: Final = frozenset(b"%c" % character for character in b"-0123456789")


class Head(NamedTuple):
    """The members that the service reads from every pushed document.

    ``is_state`` is true if the document has a numeric format version or is encrypted by OpenTofu.
    Terraform and OpenTofu push only such documents. They also write a numeric version to
    ``.terraform/terraform.tfstate``, which contains their backend instead of a state.
    """

    serial: int | None
    lineage: str | None
    is_state: bool


class _Members(msgspec.Struct, frozen=True):
    """The members of the head. msgspec checks the syntax of other members without decoding them.

    States that OpenTofu encrypted also have a serial and a lineage.
    """

    serial: int | None = None
    lineage: str | None = None
    version: msgspec.Raw = _NULL
    encrypted_data: msgspec.Raw = _NULL
    backend: msgspec.Raw = _NULL

    @property
    def is_state(self) -> bool:
        if self.version == _BACKEND_FORMAT and self.backend != _NULL:
            return False
        begins_with = bytes(memoryview(self.version)[:1])
        return begins_with in _BEGIN_NUMBERS or self.encrypted_data != _NULL


_decoder: Final = msgspec.json.Decoder(_Members)


def read_head(document: bytes | bytearray) -> Head:
    """Read the head of a document. An empty lineage counts as missing.

    Raises:
        InvalidDocument: the document is not a JSON object, or its serial or lineage is invalid.
    """
    try:
        members = _decoder.decode(document)
    except RecursionError as error:
        raise InvalidDocument("The document is nested too deeply.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidDocument(f"The document is not a valid state: {error}") from error
    serial, lineage = members.serial, members.lineage
    if serial is not None and not 0 <= serial <= MAX_SERIAL:
        raise InvalidDocument(f"The serial must be between 0 and {MAX_SERIAL}.")
    if lineage and (len(lineage) > MAX_LINEAGE or "\0" in lineage):
        raise InvalidDocument(
            f"The lineage must have at most {MAX_LINEAGE} characters, without NUL characters."
        )
    return Head(serial, lineage or None, members.is_state)


class Place(NamedTuple):
    """The identity of a document: its state, its version and the version's number."""

    state_id: uuid.UUID
    version_id: uuid.UUID
    number: int

    @property
    def context(self) -> bytes:
        """Return the associated data, without which the document cannot be decrypted."""
        return self.state_id.bytes + self.version_id.bytes


def seal(gzipped: bytes, place: Place) -> Encrypted:
    """Encrypt a gzipped document for its place with the first key."""
    numbered = bytearray(gzipped)
    numbered[_TIME] = place.number.to_bytes(4, "little")
    return encryption.encrypt(place.context, numbered)


def check_key(name: str) -> None:
    """Check that the key with this name is configured.

    Raises:
        DocumentKeyMissing: the key is not configured.
    """
    if name not in encryption.keyring():
        raise DocumentKeyMissing


def unseal(sealed: Encrypted, place: Place) -> bytes:
    """Decrypt a gzipped document.

    Raises:
        DocumentDamaged: the bytes changed, or the document belongs to another place.
        DocumentKeyMissing: the key of the document is not configured.
    """
    try:
        gzipped = encryption.decrypt(place.context, sealed)
    except encryption.KeyMissingError as error:
        raise DocumentKeyMissing from error
    except encryption.DamagedError as error:
        raise DocumentDamaged from error
    if number_of(gzipped) not in (0, place.number):
        raise DocumentDamaged
    return gzipped


def number_of(gzipped: bytes) -> int:
    """Return the version number in the document, or 0 if an early release wrote it."""
    return int.from_bytes(gzipped[_TIME], "little")


def compress(document: bytes | bytearray) -> bytes:
    """Compress a document with gzip, at the fastest level."""
    return igzip.compress(document, compresslevel=1, mtime=0)


def size_of(gzipped: bytes) -> int:
    """Return the uncompressed size from the last four bytes (RFC 1952 §2.3.1)."""
    return int.from_bytes(gzipped[-4:], "little")


def decompress(gzipped: bytes) -> bytes:
    """Decompress a document, byte for byte as it was pushed."""
    return bytes(isal_zlib.decompress(gzipped, wbits=_GZIP, bufsize=max(1, size_of(gzipped))))
