"""Keyed digests of resource identifiers, for searches without stored identifiers.

HMAC-SHA256 derives a digest key from each of STATE_ENCRYPTION_KEYS. New digests use the first key.
A search uses all keys, so it also works during a rotation.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
import uuid
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from states.document.numbers import number_text

if TYPE_CHECKING:
    import decimal
    from collections.abc import Mapping

    #: A text, or a resource identity of Terraform, which is an object.
    Value = str | Mapping[str, Any]

_PURPOSE: Final = b"infra-service: digests of resources"
_BYTES: Final = 16


@functools.cache
def _derived(configured: tuple[str, ...]) -> tuple[bytes, ...]:
    keys = (base64.b64decode(text, validate=True) for text in configured)
    return tuple(hmac.digest(key, _PURPOSE, hashlib.sha256) for key in keys)


def _digest_keys() -> tuple[bytes, ...]:
    return _derived(tuple(settings.STATE_ENCRYPTION_KEYS))


def digest(value: Value) -> uuid.UUID:
    """Return the digest to store for a value."""
    return _digest(_digest_keys()[0], value)


def digests(value: Value) -> list[uuid.UUID]:
    """Return the digests of a value with each key, starting with the first key."""
    return [_digest(key, value) for key in _digest_keys()]


def _digest(key: bytes, value: Value) -> uuid.UUID:
    kind, text = ("text", value) if isinstance(value, str) else ("object", _canonical(value))
    message = f"{kind}:{text}".encode("utf-8", "surrogatepass")
    return uuid.UUID(bytes=hmac.digest(key, message, hashlib.sha256)[:_BYTES])


def _canonical(value: Any) -> str:
    """Return the same JSON for all equal values. Omit null members."""
    if isinstance(value, str | bool) or value is None:
        return json.dumps(value)
    if isinstance(value, list):
        return f"[{','.join(map(_canonical, value))}]"
    if isinstance(value, dict):
        members = sorted((name, inner) for name, inner in value.items() if inner is not None)
        return f"{{{','.join(f'{json.dumps(n)}:{_canonical(inner)}' for n, inner in members)}}}"
    number: int | decimal.Decimal = value
    return number_text(number)
