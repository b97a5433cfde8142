"""The public keys of a key set (RFC 7517), of which only what verifies signatures is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import jwt

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The algorithms that an issuer, or the provider of sign-on, may sign with, and the type and curve
#: of the keys for each. All verify with a public key: never ``none``, and never one whose key is a
#: secret that both know.
KEYS_OF_ALGORITHMS: Final = {
    "RS256": ("RSA", None), "RS384": ("RSA", None), "RS512": ("RSA", None),
    "PS256": ("RSA", None), "PS384": ("RSA", None), "PS512": ("RSA", None),
    "ES256": ("EC", "P-256"), "ES384": ("EC", "P-384"), "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}  # fmt: skip
ALGORITHMS: Final = tuple(KEYS_OF_ALGORITHMS)
MAX_KEYS: Final = 20
#: What is kept of a key. What only its owner knows is not among it.
_MEMBERS: Final = ("kty", "kid", "alg", "crv", "n", "e", "x", "y")
_TYPES: Final = ("RSA", "EC", "OKP")

KeySet = dict[str, list[dict[str, str]]]


class KeySetError(ValueError):
    """A sentence that says why something is no key set."""


def usable_keys(found: Any) -> KeySet:
    """Return the keys of a key set that signatures can be verified with.

    Raises:
        KeySetError: there are none, or too many, or it is no key set.
    """
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list):
        raise KeySetError("there is no list of keys")
    if len(keys) > MAX_KEYS:
        raise KeySetError(f"there are more than {MAX_KEYS} keys")
    usable = [_public(key) for key in keys if _is_usable(key)]
    if not usable:
        raise KeySetError("there is no key that has a kid and is for signatures")
    return {"keys": usable}


def key_for(key_set: KeySet, kid: str, algorithm: str) -> jwt.PyJWK | None:
    """Return the key of this name, if it is one for this algorithm."""
    for key in key_set["keys"]:
        if key["kid"] == kid and verifies(key, algorithm):
            return jwt.PyJWK(key, algorithm)
    return None


def verifies(key: Mapping[str, Any], algorithm: str) -> bool:
    """Whether signatures of this algorithm are verified with the key: by its type, and its word."""
    wanted = KEYS_OF_ALGORITHMS.get(algorithm)
    return wanted == (key.get("kty"), key.get("crv")) and key.get("alg", algorithm) == algorithm


def undecodable(key_set: KeySet) -> str | None:
    """Return the name of the first key that no signature can be verified with, if there is one.

    Keys of types and curves that no algorithm here has are passed over; one key must have one.
    """
    is_verifying = False
    for key in key_set["keys"]:
        algorithm = next((name for name in ALGORITHMS if verifies(key, name)), None)
        if algorithm is None:
            continue
        is_verifying = True
        try:
            jwt.PyJWK(key, algorithm)
        except Exception:  # noqa: BLE001 - of PyJWT, of cryptography, or of numbers out of range
            return key["kid"]
    return None if is_verifying else key_set["keys"][0]["kid"]


def has_key(key_set: KeySet, kid: str) -> bool:
    """Whether there is a key of this name."""
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
