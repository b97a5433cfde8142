"""Validation of ID tokens (OpenID Connect Core, 3.1.3.7)."""

from __future__ import annotations

import hmac
from typing import Any, Final

import jwt

from apikeys.federation.key_formats import verifies

_LEEWAY_SECONDS: Final = 30
_REQUIRED: Final = ("iss", "sub", "aud", "exp", "iat", "nonce")
# The length of the database column.
_LONGEST_SUBJECT: Final = 191


class IdTokenRefusedError(Exception):
    """A token that does not prove the user's identity. The message is the reason for the log."""


def verified_claims(
    id_token: object, *, key_set: Any, issuer: str, client_id: str, nonce: str
) -> dict[str, Any]:
    """Return the claims of a token that the issuer has signed for this client and this login.

    Raises:
        IdTokenRefusedError: the token is invalid.
    """
    if not isinstance(id_token, str):
        raise IdTokenRefusedError("the response contains no ID token")
    try:
        header = jwt.get_unverified_header(id_token)
        found = _key(key_set, header)
        algorithm = header["alg"]
        key = jwt.PyJWK(found, algorithm=algorithm)
        claims: dict[str, Any] = jwt.decode(
            id_token,
            key,
            algorithms=[algorithm],
            issuer=issuer,
            audience=client_id,
            leeway=_LEEWAY_SECONDS,
            options={"require": list(_REQUIRED)},
        )
    except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
        raise IdTokenRefusedError(f"{type(error).__name__}: {error}") from error
    _check_party(claims, client_id)
    if not hmac.compare_digest(str(claims["nonce"]).encode(errors="replace"), nonce.encode()):
        raise IdTokenRefusedError("the nonce belongs to another login")
    subject = claims["sub"]
    if not subject.strip() or not (
        len(subject) <= _LONGEST_SUBJECT and subject.isascii() and subject.isprintable()
    ):
        raise IdTokenRefusedError(
            f"sub is empty, or not up to {_LONGEST_SUBJECT} printable characters of ASCII"
        )
    return claims


def _key(key_set: Any, header: dict[str, Any]) -> dict[str, Any]:
    """Return the single key of the provider that matches ``kid`` and ``alg``."""
    keys = key_set.get("keys") if isinstance(key_set, dict) else None
    found = [key for key in keys or () if isinstance(key, dict) and _may_be(key, header)]
    if len(found) != 1:
        raise IdTokenRefusedError(
            f"{len(found)} keys of the provider match the header; exactly one must match"
        )
    return found[0]


def _may_be(key: dict[str, Any], header: dict[str, Any]) -> bool:
    return (
        ("kid" not in header or key.get("kid") == header["kid"])
        and key.get("use", "sig") == "sig"
        and verifies(key, header["alg"])
    )


def _check_party(claims: dict[str, Any], client_id: str) -> None:
    """Reject a token with another client's ``azp``, or with several audiences and no ``azp``."""
    audience = claims["aud"]
    others = (
        [] if isinstance(audience, str) else [party for party in audience if party != client_id]
    )
    if claims.get("azp", None if others else client_id) != client_id:
        raise IdTokenRefusedError("the token was issued to another client")
