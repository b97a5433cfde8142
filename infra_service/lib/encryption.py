"""Encrypt stored values with ``STATE_ENCRYPTION_KEYS``, using AES-256-GCM (NIST SP 800-38D).

A stored value consists of a random 96-bit nonce, the ciphertext and the 128-bit tag. The name of
the key, which is the first 16 hexadecimal digits of its SHA-256, is stored separately. The
associated data identifies the row of the value, so that a copy in another row cannot be decrypted.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Callable

_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16


def _permit() -> None:
    """Allow every encryption."""


#: Called before each encryption. Raises an error if the keys do not belong to the database.
guard: Callable[[], None] = _permit


class KeyMissingError(Exception):
    """The key that encrypted the value is not configured."""


class DamagedError(Exception):
    """The value has been changed, or belongs to another context."""


class Encrypted(NamedTuple):
    """An encrypted value, and the name of its key."""

    payload: bytes | bytearray | memoryview
    key_name: str


@functools.cache
def _keyring(configured: tuple[str, ...]) -> dict[str, AESGCM]:
    ring = {}
    for text in configured:
        key = base64.b64decode(text, validate=True)
        if len(key) != _KEY_BYTES:
            raise ValueError(f"a state encryption key has {len(key)} bytes, not {_KEY_BYTES}")
        ring[hashlib.sha256(key).hexdigest()[:16]] = AESGCM(key)
    return ring


def keyring() -> dict[str, AESGCM]:
    """Return the configured ciphers by key name. The first cipher encrypts, and all decrypt.

    Raises:
        ValueError: a key is not 32 bytes in base64.
    """
    return _keyring(tuple(settings.STATE_ENCRYPTION_KEYS))


def current_key() -> str:
    """Return the name of the key that encrypts new values."""
    return next(iter(keyring()))


def encrypt(context: bytes, plaintext: bytes | bytearray) -> Encrypted:
    """Call ``guard``, then encrypt a value with the first key."""
    guard()
    return encrypt_unguarded(context, plaintext)


def encrypt_unguarded(context: bytes, plaintext: bytes | bytearray) -> Encrypted:
    """Encrypt a value with the first key, without calling ``guard``."""
    name, cipher = next(iter(keyring().items()))
    # Encrypt into a single buffer, because a document may have tens of megabytes.
    payload = bytearray(_NONCE_BYTES + len(plaintext) + _TAG_BYTES)
    payload[:_NONCE_BYTES] = nonce = secrets.token_bytes(_NONCE_BYTES)
    cipher.encrypt_into(nonce, plaintext, context, memoryview(payload)[_NONCE_BYTES:])
    return Encrypted(payload, name)


def decrypt(context: bytes, encrypted: Encrypted) -> bytes:
    """Return the plaintext.

    Raises:
        KeyMissingError: the key that encrypted the value is not configured.
        DamagedError: the value has been changed, or belongs to another context.
    """
    cipher = keyring().get(encrypted.key_name)
    if cipher is None:
        raise KeyMissingError(encrypted.key_name)
    payload = memoryview(encrypted.payload)
    try:
        return cipher.decrypt(payload[:_NONCE_BYTES], payload[_NONCE_BYTES:], context)
    except (InvalidTag, ValueError) as error:  # ValueError: truncated within the nonce
        raise DamagedError from error


def encrypt_to_text(context: bytes, plaintext: bytes) -> str:
    """Encrypt a value, and return it with the name of the key as text for a URL."""
    encrypted = encrypt(context, plaintext)
    return f"{encrypted.key_name}.{base64.urlsafe_b64encode(encrypted.payload).decode()}"


def decrypt_text(context: bytes, text: str) -> bytes | None:
    """Decrypt text from ``encrypt_to_text``, or return None if it is invalid."""
    key_name, _, payload = text.partition(".")
    try:
        return decrypt(context, Encrypted(base64.urlsafe_b64decode(payload), key_name))
    except (ValueError, KeyMissingError, DamagedError):
        return None
