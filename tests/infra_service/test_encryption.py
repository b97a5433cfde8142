"""Encryption at rest, including the secrets of one-time codes."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from cryptography.fernet import Fernet

from infra_service.lib import encryption
from infra_service.lib.encryption import DamagedError, Encrypted, KeyMissingError
from infra_service.sign_on import code_secrets
from tests.states.test_documents import new_key


def test_stored_form_is_stable() -> None:
    """Nonce, ciphertext and tag: releases before wrote the same bytes."""
    (configured,) = encryption.keyring().values()
    nonce = bytes(range(12))
    stored = Encrypted(
        nonce + configured.encrypt(nonce, b"text", b"row 1"), encryption.current_key()
    )

    assert encryption.decrypt(b"row 1", stored) == b"text"
    again = encryption.encrypt(b"row 1", b"text")
    assert len(again.payload) == len(stored.payload)
    assert encryption.decrypt(b"row 1", again) == b"text"


def test_undecryptable_values_are_reported(settings: Any) -> None:
    payload, key_name = encryption.encrypt(b"row 1", b"text")
    for context, changed in ((b"row 2", payload), (b"row 1", payload[:-1]), (b"row 1", b"")):
        with pytest.raises(DamagedError):
            encryption.decrypt(context, Encrypted(changed, key_name))
    settings.STATE_ENCRYPTION_KEYS = [new_key()]
    with pytest.raises(KeyMissingError, match=key_name):
        encryption.decrypt(b"row 1", Encrypted(payload, key_name))


def test_the_key_has_32_bytes(settings: Any) -> None:
    settings.STATE_ENCRYPTION_KEYS = [base64.b64encode(b"short").decode()]
    with pytest.raises(ValueError, match="has 5 bytes, not 32"):
        encryption.keyring()


def test_secrets_of_codes_are_encrypted(settings: Any) -> None:
    old = settings.STATE_ENCRYPTION_KEYS[0]
    stored = code_secrets.encrypt("SECRET", 1)
    assert code_secrets.key_name_of(stored) == encryption.current_key()
    settings.STATE_ENCRYPTION_KEYS = [new_key(), old]
    settings.SECRET_KEY = "another"
    assert code_secrets.decrypt(stored, 1) == "SECRET"

    damaged = f"{stored.partition(':')[0]}:not base64"
    for value, user_id in ((stored, 2), (damaged, 1), ("no token", 1)):
        with pytest.raises(code_secrets.SecretUnreadableError):
            code_secrets.decrypt(value, user_id)
    settings.STATE_ENCRYPTION_KEYS = [new_key()]
    with pytest.raises(code_secrets.SecretUnreadableError):
        code_secrets.decrypt(stored, 1)


def test_secrets_of_releases_before(settings: Any) -> None:
    """A Fernet token, with a key that is derived from SECRET_KEY."""
    digest = hashlib.sha256(f"second factor\n{settings.SECRET_KEY}".encode()).digest()
    stored = Fernet(base64.urlsafe_b64encode(digest)).encrypt(b"SECRET").decode()

    assert code_secrets.decrypt(stored, 1) == "SECRET"
    assert code_secrets.key_name_of(stored) == ""
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another"
    assert code_secrets.decrypt(stored, 1) == "SECRET"
