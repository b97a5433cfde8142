"""Verification of assertions: signed tokens (JWT, RFC 7519) from an issuer, for this service."""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import jwt

from apikeys.federation.exchange_errors import AssertionRefused
from apikeys.federation.key_cache import key_set_with
from apikeys.federation.key_formats import KEYS_OF_ALGORITHMS, key_for

if TYPE_CHECKING:
    from apikeys.models import Issuer

#: Maximum clock difference between an issuer and this service.
LEEWAY: Final = dt.timedelta(seconds=30)
_REQUIRED: Final = ("iss", "aud", "exp", "iat")
_MAX_KID: Final = 200


@dataclass(frozen=True, slots=True)
class Assertion:
    """A verified token with its claims."""

    claims: dict[str, Any]
    #: The digest that identifies a used assertion, and the expiry of its record.
    digest: bytes
    expires_at: dt.datetime


def verify(token: str, issuer: Issuer) -> Assertion:
    """Verify the signature and the claims of a token, and return the assertion.

    Raises:
        AssertionRefused: the token is not valid.
        IssuerBusy: too many requests wait for the issuer's keys.
    """
    algorithm, kid = _header(token, issuer)
    key_set = key_set_with(issuer, kid)
    try:
        key = key_for(key_set, kid, algorithm)
        if key is None:
            raise AssertionRefused("key_unknown", "the key with this id is for another use")
        claims = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=issuer.audience,
            issuer=issuer.url,
            leeway=LEEWAY,
            options={"require": list(_REQUIRED), "enforce_minimum_key_length": True},
        )
    except jwt.PyJWTError as error:
        raise AssertionRefused("assertion_invalid", str(error)) from error
    # Kubernetes lists audiences. Another audience of a shared token could exchange the token here.
    if claims["aud"] not in (issuer.audience, [issuer.audience]):
        raise AssertionRefused("assertion_invalid", "The aud claim contains other audiences")
    return Assertion(claims, _digest(token, claims), _end(claims, issuer))


def _header(token: str, issuer: Issuer) -> tuple[str, str]:
    """Return the algorithm and the key id. All other headers are untrusted."""
    if not token.isascii():
        raise AssertionRefused("assertion_invalid", "The assertion is not a signed token")
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError as error:
        raise AssertionRefused("assertion_invalid", str(error)) from error
    algorithm, kid = header.get("alg"), header.get("kid")
    if algorithm not in issuer.algorithms or algorithm not in KEYS_OF_ALGORITHMS:
        raise AssertionRefused("algorithm_unexpected", "The issuer does not use this algorithm")
    if "crit" in header:
        raise AssertionRefused("assertion_invalid", "The crit header names an extension")
    if not isinstance(kid, str) or not 1 <= len(kid) <= _MAX_KID:
        raise AssertionRefused(
            "key_unknown", f"The kid header must have 1 to {_MAX_KID} characters"
        )
    return algorithm, kid


def _end(claims: dict[str, Any], issuer: Issuer) -> dt.datetime:
    """Return the moment until which the used assertion must be stored."""
    begins, ends = claims["iat"], claims["exp"]
    if isinstance(begins, str) or isinstance(ends, str):
        raise AssertionRefused("assertion_invalid", "The iat and exp claims must be numbers")
    # Python cannot subtract a huge integer from a fraction, or print more than 4,300 digits.
    begins, ends = int(begins), int(ends)
    if begins < 0:
        raise AssertionRefused("assertion_invalid", "The iat claim is before 1970")
    if not 0 < ends - begins <= issuer.max_assertion_seconds:
        raise AssertionRefused(
            "assertion_too_long",
            f"The exp claim is {ends - begins} seconds after iat, and the maximum is "
            f"{issuer.max_assertion_seconds}",
        )
    return dt.datetime.fromtimestamp(ends, dt.UTC) + LEEWAY * 2


def _digest(token: str, claims: dict[str, Any]) -> bytes:
    """Return a digest that is unique among the issuer's assertions.

    Without a ``jti``, the digest covers the signed part but not the signature, because some
    algorithms can encode the same valid signature in two ways.
    """
    jti = claims.get("jti")
    identifier = f"jti\0{jti}" if jti else f"signed\0{token.rpartition('.')[0]}"
    issuer_url = claims["iss"]
    return hashlib.sha256(f"{issuer_url}\0{identifier}".encode("utf-8", "surrogatepass")).digest()
