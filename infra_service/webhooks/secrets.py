"""Signing secrets of endpoints, and signatures (Standard Webhooks 1.0.0)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from infra_service.lib import encryption

if TYPE_CHECKING:
    import uuid

    from infra_service.webhooks.models import WebhookEndpoint

_PREFIX: Final = "whsec_"
_BYTES: Final = 32


class SecretUnreadableError(Exception):
    """A secret that is damaged, or was encrypted with a key that is not configured."""


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
        raise SecretUnreadableError from error


def reencrypted(endpoint: WebhookEndpoint) -> dict[str, Any]:
    """Return the changed columns after encrypting all secrets of an endpoint with the current key.

    Skip a secret that cannot be decrypted.
    """
    columns: dict[str, Any] = {}
    for prefix in ("", "retired_"):
        sealed, key_name = f"{prefix}secret", f"{prefix}encryption_key"
        encrypted, used = getattr(endpoint, sealed), getattr(endpoint, key_name)
        if encrypted is None or used == encryption.current_key():
            continue
        with suppress(SecretUnreadableError):
            secret = decrypt(encrypted, used, endpoint.pk)
            columns[sealed], columns[key_name] = encrypt(secret, endpoint.pk)
    return columns


def signing_secrets(endpoint: WebhookEndpoint) -> list[bytes]:
    """Return the secrets that sign now: the current secret, and for a day the replaced secret.

    Skip a replaced secret that cannot be decrypted.

    Raises:
        SecretUnreadableError: the current secret cannot be decrypted.
    """
    signing = [decrypt(endpoint.secret, endpoint.encryption_key, endpoint.pk)]
    if endpoint.retired_secret is not None and endpoint.retired_secret_signs:
        with suppress(SecretUnreadableError):
            signing.append(
                decrypt(endpoint.retired_secret, endpoint.retired_encryption_key, endpoint.pk)
            )
    return signing


def sign(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def _context(endpoint_id: uuid.UUID) -> bytes:
    """Return the associated data, which prevents decryption in another row."""
    return b"webhook" + endpoint_id.bytes
