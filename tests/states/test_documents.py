"""The form of documents at rest."""

import base64
import secrets
import uuid
from typing import Any

import pytest

from states import documents
from states.checks import encryption_keys_are_usable
from states.documents import Sealed
from states.errors import DocumentDamaged

STATE, VERSION = uuid.UUID(int=1), uuid.UUID(int=2)


def new_key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


def test_there_and_back() -> None:
    document = b'{"serial": 1}' * 1000

    sealed = documents.seal(documents.compress(document), STATE, VERSION)

    assert documents.decompress(documents.unseal(sealed, STATE, VERSION)) == document


def test_the_same_document_never_looks_the_same() -> None:
    first, second = (documents.seal(b"same", STATE, VERSION).payload for _ in range(2))

    assert first != second


@pytest.mark.parametrize("place", [(VERSION, VERSION), (STATE, STATE)])
def test_it_is_bound_to_its_place(place: tuple[uuid.UUID, uuid.UUID]) -> None:
    sealed = documents.seal(b"document", STATE, VERSION)

    with pytest.raises(DocumentDamaged):
        documents.unseal(sealed, *place)


def test_every_byte_is_guarded() -> None:
    sealed = documents.seal(b"document", STATE, VERSION)

    for position in range(len(sealed.payload)):
        changed = bytearray(sealed.payload)
        changed[position] ^= 1
        with pytest.raises(DocumentDamaged):
            documents.unseal(Sealed(changed, sealed.key_name), STATE, VERSION)


def test_the_first_key_encrypts_and_all_decrypt(settings: Any) -> None:
    old, new = new_key(), new_key()
    settings.STATE_ENCRYPTION_KEYS = [old]
    sealed = documents.seal(b"document", STATE, VERSION)

    settings.STATE_ENCRYPTION_KEYS = [new, old]
    assert documents.unseal(sealed, STATE, VERSION) == b"document"
    assert documents.seal(b"document", STATE, VERSION).key_name != sealed.key_name

    settings.STATE_ENCRYPTION_KEYS = [new]
    with pytest.raises(DocumentDamaged):
        documents.unseal(sealed, STATE, VERSION)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ([], "there is none"),
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
