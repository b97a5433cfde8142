"""An ID token proves an identity only if every part of it is valid."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from infra_service.sign_on.id_tokens import IdTokenRefusedError, verified_claims

ISSUER, CLIENT, NONCE = "https://idp.example", "infra", "n-1"
KEY = rsa.generate_private_key(65537, 2048)
PUBLIC: dict[str, Any] = json.loads(RSAAlgorithm.to_jwk(KEY.public_key()))


def claims(**change: Any) -> dict[str, Any]:
    """Return good claims with these changes: times in seconds from now, and ``...`` is left out."""
    base = {"iss": ISSUER, "sub": "1", "aud": CLIENT, "exp": 300, "iat": 0, "nonce": NONCE}
    given = {name: value for name, value in {**base, **change}.items() if value is not ...}
    now = int(time.time())
    return {name: now + value if name in {"exp", "iat"} else value for name, value in given.items()}


def verify(token: object, *keys: Any) -> dict[str, Any]:
    return verified_claims(
        token, key_set={"keys": [*keys]}, issuer=ISSUER, client_id=CLIENT, nonce=NONCE
    )


def signed(algorithm: str = "RS256", headers: Any = None, **change: Any) -> str:
    return jwt.encode(claims(**change), KEY, algorithm, headers=headers)


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256"])
@pytest.mark.parametrize("aud", [CLIENT, [CLIENT]])
def test_valid_id_token_is_accepted(algorithm: str, aud: Any) -> None:
    assert verify(signed(algorithm, aud=aud), PUBLIC)["sub"] == "1"


def test_token_with_several_audiences_is_accepted() -> None:
    token = signed(aud=[CLIENT, "other"], azp=CLIENT)

    assert verify(token, PUBLIC)["sub"] == "1"


@pytest.mark.parametrize("missing", ["iss", "sub", "aud", "exp", "iat", "nonce"])
def test_every_claim_is_needed(missing: str) -> None:
    with pytest.raises(IdTokenRefusedError):
        verify(signed(**{missing: ...}), PUBLIC)


@pytest.mark.parametrize(
    "change",
    [
        {"iss": f"{ISSUER}/"}, {"aud": ["other"]}, {"aud": []}, {"aud": {CLIENT: 1}},
        {"exp": -60}, {"iat": 600}, {"nonce": 1},
        {"sub": 1}, {"azp": "other"}, {"sub": "é"},
    ],
    ids=str,
)  # fmt: skip
def test_invalid_claims_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(IdTokenRefusedError):
        verify(signed(**change), PUBLIC)


def test_a_public_key_is_no_shared_secret() -> None:
    """If HMAC were accepted, anyone with the public key could sign."""
    der = KEY.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    parts = ({"alg": "HS256", "typ": "JWT"}, claims())
    text = ".".join(base64url(json.dumps(part).encode()) for part in parts)
    forged = f"{text}.{base64url(hmac.digest(der, text.encode(), hashlib.sha256))}"
    shared = {"kty": "oct", "k": base64url(der), "alg": "HS256"}

    for key in (PUBLIC, {**PUBLIC, "alg": "HS256"}, shared):
        with pytest.raises(IdTokenRefusedError):
            verify(forged, key)


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def test_keys_in_the_header_are_not_looked_at() -> None:
    other = rsa.generate_private_key(65537, 2048)
    its_own = json.loads(RSAAlgorithm.to_jwk(other.public_key()))
    token = jwt.encode(claims(), other, "RS256", headers={"jwk": its_own, "jku": "https://x"})

    with pytest.raises(IdTokenRefusedError):
        verify(token, PUBLIC)


@pytest.mark.parametrize(
    ("headers", "keys"),
    [
        ({"kid": "a"}, [{**PUBLIC, "kid": "b"}]),
        ({"kid": "a"}, [PUBLIC]),
        (None, [{**PUBLIC, "kid": "a"}, {**PUBLIC, "kid": "b"}]),
        (None, [{**PUBLIC, "use": "enc"}]),
        (None, [{**PUBLIC, "alg": "RS512"}]),
        (None, [{"kty": "RSA", "n": 1, "e": "AQAB"}]),
        (None, [{"kty": "RSA"}]),
        (None, ["key"]),
        (None, []),
    ],
)
def test_foreign_keys_are_refused(headers: Any, keys: list[Any]) -> None:
    with pytest.raises(IdTokenRefusedError):
        verify(signed(headers=headers), *keys)


def test_named_key_is_used() -> None:
    other = json.loads(RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 2048).public_key()))
    token = signed(headers={"kid": "mine"})

    assert verify(token, {**other, "kid": "other"}, {**PUBLIC, "kid": "mine", "use": "sig"})


@pytest.mark.parametrize("token", [None, 1, "", "a.b.c", "x" * 10_000])
def test_text_without_a_token_is_rejected(token: object) -> None:
    with pytest.raises(IdTokenRefusedError):
        verify(token, PUBLIC)


@pytest.mark.parametrize("key_set", [None, [], {}, {"keys": None}])
def test_missing_keys_are_reported(key_set: Any) -> None:
    with pytest.raises(IdTokenRefusedError):
        verified_claims(signed(), key_set=key_set, issuer=ISSUER, client_id=CLIENT, nonce=NONCE)
