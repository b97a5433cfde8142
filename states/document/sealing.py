"""Documents: their head, and their form at rest.

At rest a document is gzip'd, then encrypted (``infra_service.lib.encryption``). The associated data
names the state's and the version's id, so that a document that was moved to another row does not
decrypt. The version's number is in the gzip header, as its time, which the release before this one
reads: both run during an upgrade.
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

_GZIP: Final = 31  # zlib's name for the gzip format with its largest window
_TIME: Final = slice(4, 8)  # of a gzip header (RFC 1952 §2.3.1); 0 means unknown
MAX_LINEAGE: Final = 255


_NULL: Final = msgspec.Raw(b"null")
_BEGIN_NUMBERS: Final = frozenset(b"%c" % character for character in b"-0123456789")


class Head(NamedTuple):
    """The members that the service reads from every pushed document.

    ``is_state`` is whether Terraform or OpenTofu can have written it: it has the number of a format
    version, or OpenTofu has encrypted it.
    """

    serial: int | None
    lineage: str | None
    is_state: bool


class _Members(msgspec.Struct, frozen=True):
    """The members as written; msgspec checks the syntax of other members without decoding them.

    OpenTofu's encrypted states have serial and lineage next to ``encrypted_data``.
    """

    serial: int | None = None
    lineage: str | None = None
    version: msgspec.Raw = _NULL
    encrypted_data: msgspec.Raw = _NULL

    @property
    def is_state(self) -> bool:
        begins_with = bytes(memoryview(self.version)[:1])
        return begins_with in _BEGIN_NUMBERS or self.encrypted_data != _NULL


_decoder: Final = msgspec.json.Decoder(_Members)


def read_head(document: bytes | bytearray) -> Head:
    """Read the head of a document; an empty lineage counts as missing.

    Raises:
        InvalidDocument: not a JSON object, or an invalid serial or lineage.
    """
    try:
        members = _decoder.decode(document)
    except RecursionError as error:
        raise InvalidDocument("The document is nested too deeply.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidDocument(f"The document is not a JSON object of a state: {error}") from error
    serial, lineage = members.serial, members.lineage
    if serial is not None and not 0 <= serial <= MAX_SERIAL:
        raise InvalidDocument(f"The serial is not between 0 and {MAX_SERIAL}.")
    if lineage and (len(lineage) > MAX_LINEAGE or "\0" in lineage):
        raise InvalidDocument(f"The lineage is over {MAX_LINEAGE} characters or contains a NUL.")
    return Head(serial, lineage or None, members.is_state)


class Place(NamedTuple):
    """The identity of a document: its state, its version and the version's number."""

    state_id: uuid.UUID
    version_id: uuid.UUID
    number: int

    @property
    def context(self) -> bytes:
        """The associated data, without which the document does not decrypt."""
        return self.state_id.bytes + self.version_id.bytes


def seal(gzipped: bytes, place: Place) -> Encrypted:
    """Encrypt a gzip'd document for its place, with the first key."""
    numbered = bytearray(gzipped)
    numbered[_TIME] = place.number.to_bytes(4, "little")
    return encryption.encrypt(place.context, numbered)


def check_key(name: str) -> None:
    """Require the key with this name.

    Raises:
        DocumentKeyMissing: the key is not configured.
    """
    if name not in encryption.keyring():
        raise DocumentKeyMissing


def unseal(sealed: Encrypted, place: Place) -> bytes:
    """Return the gzip'd document.

    Raises:
        DocumentDamaged: a bit has changed, or the document belongs elsewhere.
        DocumentKeyMissing: its key is not configured.
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
    """Return the number of the version that the document is bound to; 0 for earlier releases."""
    return int.from_bytes(gzipped[_TIME], "little")


def compress(document: bytes | bytearray) -> bytes:
    """Return the document gzip'd, at the level that is as fast as the network."""
    return igzip.compress(document, compresslevel=1, mtime=0)


def size_of(gzipped: bytes) -> int:
    """Return the size of the document, from its last four bytes (RFC 1952 §2.3.1)."""
    return int.from_bytes(gzipped[-4:], "little")


def decompress(gzipped: bytes) -> bytes:
    """Return the document, byte for byte as it was pushed."""
    return bytes(isal_zlib.decompress(gzipped, wbits=_GZIP, bufsize=max(1, size_of(gzipped))))
