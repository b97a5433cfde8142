"""Public keys of a key set (RFC 7517), reduced to the fields that verify signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import jwt

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Signature algorithms for issuers and the sign-on provider, with the type and curve of their keys.
#: All algorithms use public keys. ``none`` and algorithms with a shared secret are excluded.
KEYS_OF_ALGORITHMS: Final = {
    "RS256": ("RSA", None), "RS384": ("RSA", None), "RS512": ("RSA", None),
    "PS256": ("RSA", None), "PS384": ("RSA", None), "PS512": ("RSA", None),
    "ES256": ("EC", "P-256"), "ES384": ("EC", "P-384"), "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}  # fmt: skip
ALGORITHMS: Final = tuple(KEYS_OF_ALGORITHMS)
MAX_KEYS: Final = 20
#: Stored fields of a key, without private fields.
_MEMBERS: Final = ("kty", "kid", "alg", "crv", "n", "e", "x", "y")
_TYPES: Final = ("RSA", "EC", "OKP")

KeySet = dict[str, list[dict[str, str]]]


class KeySetError(ValueError):
    """An invalid key set. The message states the reason."""


def usable_keys(found: Any) -> KeySet:
    """Return the keys of a key set that can verify signatures.

    Raises:
        KeySetError: the key set is invalid, has too many keys, or has no usable key.
    """
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list):
        raise KeySetError("the key set has no list of keys")
    if len(keys) > MAX_KEYS:
        raise KeySetError(f"there are more than {MAX_KEYS} keys")
    usable = [_public(key) for key in keys if _is_usable(key)]
    if not usable:
        raise KeySetError("the key set has no signature key with a kid")
    return {"keys": usable}


def key_for(key_set: KeySet, kid: str, algorithm: str) -> jwt.PyJWK | None:
    """Return the key with this id, if it supports the algorithm."""
    for key in key_set["keys"]:
        if key["kid"] == kid and verifies(key, algorithm):
            return jwt.PyJWK(key, algorithm)
    return None


def verifies(key: Mapping[str, Any], algorithm: str) -> bool:
    """Return whether the type, curve and declared algorithm of the key match this algorithm."""
    wanted = KEYS_OF_ALGORITHMS.get(algorithm)
    return wanted == (key.get("kty"), key.get("crv")) and key.get("alg", algorithm) == algorithm


def undecodable(key_set: KeySet) -> str | None:
    """Return the id of the first key that cannot verify signatures, if any.

    The function skips keys without a supported algorithm, unless all keys are unsupported.
    """
    is_verifying = False
    for key in key_set["keys"]:
        algorithm = next((name for name in ALGORITHMS if verifies(key, name)), None)
        if algorithm is None:
            continue
        is_verifying = True
        try:
            jwt.PyJWK(key, algorithm)
        except Exception:  # noqa: BLE001 - from PyJWT, cryptography, or numbers out of range
            return key["kid"]
    return None if is_verifying else key_set["keys"][0]["kid"]


def has_key(key_set: KeySet, kid: str) -> bool:
    return any(key["kid"] == kid for key in key_set["keys"])


def _public(key: dict[str, Any]) -> dict[str, Any]:
    return {name: key[name] for name in _MEMBERS if name in key}


def _is_usable(key: Any) -> bool:
    if not isinstance(key, dict) or key.get("kty") not in _TYPES or not key.get("kid"):
        return False
    kept = _public(key)
    return key.get("use", "sig") == "sig" and all(
        isinstance(value, str) and value.isprintable() for value in kept.values()
    )
