"""Encryption of the secrets of one-time codes in the database.

A stored secret is ``NAME:BASE64``: the name of a key in ``STATE_ENCRYPTION_KEYS``, and the output
of ``infra_service.lib.encryption``. Earlier releases stored Fernet tokens with a key derived from
``SECRET_KEY``. ``rotate_state_keys`` re-encrypts these tokens.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from infra_service.lib import encryption


class SecretUnreadableError(Exception):
    """A secret that is damaged, or was encrypted with a key that is not configured."""


def encrypt(secret: str, user_id: Any) -> str:
    """Encrypt a secret of this user with the first key."""
    payload, key_name = encryption.encrypt(_context(user_id), secret.encode())
    return f"{key_name}:{base64.b64encode(payload).decode()}"


def decrypt(stored: str, user_id: Any) -> str:
    """Return the secret.

    Raises:
        SecretUnreadableError: the secret cannot be decrypted.
    """
    key_name, separator, text = stored.partition(":")
    try:
        if not separator:
            return _fernet().decrypt(stored.encode()).decode()
        value = encryption.Encrypted(base64.b64decode(text, validate=True), key_name)
        return encryption.decrypt(_context(user_id), value).decode()
    except (
        InvalidToken,
        binascii.Error,
        encryption.KeyMissingError,
        encryption.DamagedError,
    ) as error:
        raise SecretUnreadableError from error


def key_name_of(stored: str) -> str:
    """Return the name of the key, or an empty text if it is derived from ``SECRET_KEY``."""
    name, separator, _ = stored.partition(":")
    return name if separator else ""


def _context(user_id: Any) -> bytes:
    """Return the associated data, which prevents decryption for another user."""
    return f"second factor {user_id}".encode()


def _fernet() -> MultiFernet:
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    digests = (hashlib.sha256(f"second factor\n{key}".encode()).digest() for key in keys)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])
