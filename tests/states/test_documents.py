"""The form of documents at rest."""

import base64
import gzip
import secrets
import uuid
from typing import Any

import pytest

from infra_service.lib import encryption
from states.checks import encryption_keys_are_usable
from states.document import sealing
from states.errors import DocumentDamaged, DocumentKeyMissing

STATE, VERSION = uuid.UUID(int=1), uuid.UUID(int=2)
PLACE = sealing.Place(STATE, VERSION, 1)
GZIPPED = sealing.compress(b"document")


def new_key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


def test_round_trip_preserves_the_data() -> None:
    document = b'{"serial": 1}' * 1000

    sealed = sealing.seal(sealing.compress(document), PLACE)

    assert sealing.decompress(sealing.unseal(sealed, PLACE)) == document


def test_the_same_document_never_looks_the_same() -> None:
    first, second = (sealing.seal(GZIPPED, PLACE).payload for _ in range(2))

    assert first != second


@pytest.mark.parametrize("place", [(VERSION, VERSION, 1), (STATE, STATE, 1), (STATE, VERSION, 2)])
def test_it_is_bound_to_its_place(place: tuple[uuid.UUID, uuid.UUID, int]) -> None:
    sealed = sealing.seal(GZIPPED, PLACE)

    with pytest.raises(DocumentDamaged):
        sealing.unseal(sealed, sealing.Place(*place))


def test_the_release_before_numbers_reads_it() -> None:
    """It knows the ids alone, and nothing of a number."""
    sealed = sealing.seal(GZIPPED, PLACE)
    payload, cipher = bytes(sealed.payload), encryption.keyring()[sealed.key_name]

    gzipped = cipher.decrypt(payload[:12], payload[12:], STATE.bytes + VERSION.bytes)

    assert gzip.decompress(gzipped) == b"document"


def test_resealed_document_has_its_new_number() -> None:
    other = sealing.Place(STATE, VERSION, 2**31 - 1)
    moved = sealing.unseal(sealing.seal(GZIPPED, PLACE), PLACE)

    assert sealing.decompress(sealing.unseal(sealing.seal(moved, other), other)) == b"document"


def test_every_byte_is_guarded() -> None:
    sealed = sealing.seal(GZIPPED, PLACE)

    for position in range(len(sealed.payload)):
        changed = bytearray(sealed.payload)
        changed[position] ^= 1
        with pytest.raises(DocumentDamaged):
            sealing.unseal(encryption.Encrypted(changed, sealed.key_name), PLACE)


def test_the_first_key_encrypts_and_all_decrypt(settings: Any) -> None:
    old, new = new_key(), new_key()
    settings.STATE_ENCRYPTION_KEYS = [old]
    sealed = sealing.seal(GZIPPED, PLACE)

    settings.STATE_ENCRYPTION_KEYS = [new, old]
    assert sealing.decompress(sealing.unseal(sealed, PLACE)) == b"document"
    assert sealing.seal(GZIPPED, PLACE).key_name != sealed.key_name

    settings.STATE_ENCRYPTION_KEYS = [new]
    with pytest.raises(DocumentKeyMissing):
        sealing.unseal(sealed, PLACE)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ([], "no key is configured"),
        ([base64.b64encode(b"short").decode()], "a state encryption key has 5 bytes, not 32"),
        (["!"], "Only base64 data is allowed"),
    ],
)
def test_a_check_reports_keys_that_cannot_encrypt(
    settings: Any, keys: list[str], problem: str
) -> None:
    settings.STATE_ENCRYPTION_KEYS = keys

    (error,) = encryption_keys_are_usable()

    assert error.id == "states.E001"
    assert error.msg == f"STATE_ENCRYPTION_KEYS: {problem}."


def test_a_check_is_content_with_good_keys() -> None:
    assert encryption_keys_are_usable() == []
