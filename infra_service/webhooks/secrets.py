"""Encrypted URLs and signing secrets of endpoints, and signatures (Standard Webhooks 1.0.0)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, Final

from infra_service.lib import encryption

if TYPE_CHECKING:
    import uuid

_PREFIX: Final = "whsec_"
_BYTES: Final = 32


class SecretUnreadableError(Exception):
    """A secret or URL that is damaged, or was encrypted with a key that is not configured.

    The text states the remedies: the operator adds the key, or the owner replaces the value.
    """


def new_secret() -> bytes:
    return secrets.token_bytes(_BYTES)


def shown(secret: bytes) -> str:
    """Return the secret in the format that is shown to its owner once."""
    return _PREFIX + base64.b64encode(secret).decode()


def encrypt(secret: bytes, endpoint_id: uuid.UUID) -> tuple[bytes, str]:
    """Return the encrypted secret and the name of the key, which is the first configured key."""
    payload, name = encryption.encrypt(_context(endpoint_id), secret)
    return bytes(payload), name


def decrypt(encrypted: bytes | memoryview, key_name: str, endpoint_id: uuid.UUID) -> bytes:
    """Return the decrypted secret.

    Raises:
        SecretUnreadableError: the secret cannot be decrypted.
    """
    try:
        return encryption.decrypt(_context(endpoint_id), encryption.Encrypted(encrypted, key_name))
    except (encryption.KeyMissingError, encryption.DamagedError) as error:
        raise SecretUnreadableError(
            "the secret cannot be read: inform the operator, or rotate it"
        ) from error


def encrypt_url(url: str, endpoint_id: uuid.UUID) -> str:
    """Return the encrypted URL, with the name of the key before a period."""
    return encryption.encrypt_to_text(_context_of_url(endpoint_id), url.encode())


def decrypt_url(encrypted: str, endpoint_id: uuid.UUID) -> str:
    """Return the decrypted URL.

    Raises:
        SecretUnreadableError: the URL cannot be decrypted.
    """
    url = encryption.decrypt_text(_context_of_url(endpoint_id), encrypted)
    if url is None:
        raise SecretUnreadableError("the URL cannot be read: inform the operator, or set it again")
    return url.decode()


def sign(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def _context(endpoint_id: uuid.UUID) -> bytes:
    """Return the associated data, which prevents decryption in another row."""
    return b"webhook" + endpoint_id.bytes


def _context_of_url(endpoint_id: uuid.UUID) -> bytes:
    return b"webhook URL" + endpoint_id.bytes
