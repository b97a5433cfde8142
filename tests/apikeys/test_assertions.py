"""Validation of signed tokens, against each known attack on other implementations."""

from __future__ import annotations

import base64
import datetime as dt
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from apikeys.federation import assertions
from apikeys.federation.exchange_errors import AssertionRefused
from apikeys.models import AccessToken, AuditEvent, Issuer, UsedAssertion
from tests.apikeys.exchanging import (
    GRANT,
    PATH,
    REFUSED,
    Pipeline,
    PipelineOf,
    refusal,
    why,
)
from tests.support.issuer import AUDIENCE, DISCOVERY, KEYS, Key, claims_of, sign

NOW = int(dt.datetime.now(dt.UTC).timestamp())
HOUR = 3600


def parts(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_valid_assertion_is_accepted(pipeline: Pipeline) -> None:
    assert pipeline.exchange().status_code == 200


CLAIMS: dict[str, tuple[dict[str, Any], str]] = {
    "for another audience": ({"aud": "https://elsewhere.example"}, "assertion_invalid"),
    "for others as well": ({"aud": [AUDIENCE, "https://elsewhere.example"]}, "assertion_invalid"),
    "for nobody": ({"aud": None}, "assertion_invalid"),
    "for an empty list": ({"aud": []}, "assertion_invalid"),
    "an audience that begins so": ({"aud": f"{AUDIENCE}.evil.example"}, "assertion_invalid"),
    "of another issuer": ({"iss": "https://elsewhere.example"}, "assertion_invalid"),
    "of no issuer": ({"iss": None}, "assertion_invalid"),
    "expired": ({"iat": NOW - 600, "nbf": NOW - 600, "exp": NOW - 60}, "assertion_invalid"),
    "of tomorrow": ({"iat": NOW + 9000, "nbf": None, "exp": NOW + 9060}, "assertion_invalid"),
    "not yet": ({"nbf": NOW + 9000}, "assertion_invalid"),
    "without an end": ({"exp": None}, "assertion_invalid"),
    "without a beginning": ({"iat": None}, "assertion_invalid"),
    "with an endless end": ({"exp": float("inf")}, "assertion_invalid"),
    "with no number": ({"exp": float("nan")}, "assertion_invalid"),
    "with texts for times": ({"iat": str(NOW), "exp": str(NOW + 60)}, "assertion_invalid"),
    "with a text for its beginning": ({"iat": str(NOW)}, "assertion_invalid"),
    "with a text for its end": ({"exp": str(NOW + 60)}, "assertion_invalid"),
    "long before 1970": ({"iat": -(10**4299 * 9)}, "assertion_invalid"),
    "before 1970 until a fraction": ({"iat": -(10**400), "exp": NOW + 60.5}, "assertion_invalid"),
    "good for too long": ({"iat": NOW, "exp": NOW + 2 * HOUR}, "assertion_too_long"),
    "with an id that is no text": ({"jti": 7}, "assertion_invalid"),
}


@pytest.mark.parametrize("what", CLAIMS)
def test_invalid_claims_are_refused(pipeline: Pipeline, what: str) -> None:
    claims, reason = CLAIMS[what]
    # A null in this table means that the claim is missing, so remove it.
    more = {name: value for name, value in claims.items() if value is not None}
    payload = claims_of("GITHUB", pipeline.server.url, **more)
    for name in claims.keys() - more.keys():
        del payload[name]
    token = parts({"alg": "ES256", "kid": "one"}) + "." + parts(payload)
    signature = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256).sign(
        token.encode(), pipeline.server.keys[0].private
    )

    signed = base64.urlsafe_b64encode(signature).rstrip(b"=").decode()
    assert refusal(pipeline.exchange(f"{token}.{signed}")) == REFUSED

    assert why() == reason
    assert not AccessToken.objects.exists()


@pytest.mark.parametrize("seconds", [-10, 0])
def test_assertion_without_a_positive_lifetime_is_rejected(
    pipeline: Pipeline, seconds: int
) -> None:
    now = int(dt.datetime.now(dt.UTC).timestamp())
    token = pipeline.token(iat=now + 20, nbf=now, exp=now + 20 + seconds)

    assert refusal(pipeline.exchange(token)) == REFUSED
    assert why() == "assertion_too_long"
    most = pipeline.issuer.max_assertion_seconds
    because = f"The exp claim is {seconds} seconds after iat, and the maximum is {most}"
    assert AuditEvent.objects.get().details["because"] == because


@pytest.mark.parametrize(
    ("begins", "ends", "because"),
    [
        (-1, 59, "The iat claim is before 1970"),
        (0, 61, "The exp claim is 61 seconds after iat, and the maximum is 60"),
        (0, 60, None),
        (0.1, 60.9, None),  # 60.8 seconds, but fractions do not count
    ],
)
def test_limits_of_the_lifetime(begins: float, ends: float, because: str | None) -> None:
    claims, issuer = {"iat": begins, "exp": ends}, Issuer(max_assertion_seconds=60)
    if because is None:
        assert assertions._end(claims, issuer) == dt.datetime.fromtimestamp(120, dt.UTC)
    else:
        with pytest.raises(AssertionRefused) as refused:
            assertions._end(claims, issuer)
        assert refused.value.because == because


@pytest.mark.parametrize("seconds", [1, 3600])
def test_shortest_and_longest_tokens_are_accepted(pipeline: Pipeline, seconds: int) -> None:
    now = int(dt.datetime.now(dt.UTC).timestamp())

    assert pipeline.exchange(pipeline.token(iat=now, exp=now + seconds)).status_code == 200


@pytest.mark.parametrize("change", ["HTTPS://{}", "https://{}/", "https://{} ", "https://{}#"])
def test_the_issuer_is_compared_byte_for_byte(pipeline: Pipeline, change: str) -> None:
    name = change.format(pipeline.server.url.removeprefix("https://"))

    assert refusal(pipeline.exchange(pipeline.token(iss=name))) == REFUSED
    assert why() == "assertion_invalid"


def test_list_with_a_single_audience_is_accepted(pipeline: Pipeline) -> None:
    """Kubernetes writes it so."""
    assert pipeline.exchange(pipeline.token(aud=[AUDIENCE])).status_code == 200


def test_the_clocks_may_be_apart_a_little(pipeline: Pipeline) -> None:
    now = int(dt.datetime.now(dt.UTC).timestamp())
    late = pipeline.token(iat=now - 300, nbf=now - 300, exp=now - 5)

    assert pipeline.exchange(late).status_code == 200


def test_unsigned_token_is_rejected(pipeline: Pipeline) -> None:
    payload = claims_of("GITHUB", pipeline.server.url)
    for algorithm in ("none", "None", "NONE", ""):
        token = f"{parts({'alg': algorithm, 'kid': 'one'})}.{parts(payload)}."
        assert refusal(pipeline.exchange(token)) == REFUSED
        assert why() == "algorithm_unexpected"


def test_a_public_key_is_no_shared_secret(pipeline: Pipeline) -> None:
    """An HMAC keyed with the public key, with the algorithm that the header names."""
    Issuer.objects.update(algorithms=["ES256", "HS256"])
    key = pipeline.server.keys[0]
    public = key.private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    for secret in (public, json.dumps(key.public).encode()):
        algorithm = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
        signed = f"{parts({'alg': 'HS256', 'kid': 'one'})}."
        signed += parts(claims_of("GITHUB", pipeline.server.url))
        signature = base64.urlsafe_b64encode(algorithm.sign(signed.encode(), secret))
        assert refusal(pipeline.exchange(f"{signed}.{signature.rstrip(b'=').decode()}")) == REFUSED
        assert why() == "algorithm_unexpected"


def test_shared_secret_among_the_keys_is_ignored(pipeline: Pipeline, monkeypatch: Any) -> None:
    shared = {"kty": "oct", "kid": "two", "k": parts("x" * 40), "use": "sig"}
    monkeypatch.setattr(Key, "public", shared)

    assert refusal(pipeline.exchange()) == REFUSED
    assert why() == "keys_unavailable"


def test_unused_algorithm_is_refused(pipeline: Pipeline) -> None:
    Issuer.objects.update(algorithms=["RS256"])

    assert refusal(pipeline.exchange()) == REFUSED
    assert why() == "algorithm_unexpected"


def test_key_for_another_algorithm_is_ignored(pipeline: Pipeline) -> None:
    """The header can choose neither the key's algorithm nor another key."""
    Issuer.objects.update(algorithms=["ES256", "RS256"])
    private = rsa.generate_private_key(65537, 2048)
    token = jwt.encode(claims_of("GITHUB", pipeline.server.url), private, "RS256", {"kid": "one"})

    assert refusal(pipeline.exchange(token)) == REFUSED
    assert why() == "key_unknown"


def test_short_key_is_ignored(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    Issuer.objects.update(algorithms=["RS256"])
    private = rsa.generate_private_key(65537, 1024)
    public = jwt.algorithms.RSAAlgorithm.to_jwk(private.public_key(), as_dict=True)
    monkeypatch.setattr(Key, "public", {**public, "kid": "one"})
    signed = f"{parts({'alg': 'RS256', 'kid': 'one'})}."
    signed += parts(claims_of("GITHUB", pipeline.server.url))
    algorithm = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256)
    signature = base64.urlsafe_b64encode(algorithm.sign(signed.encode(), private))

    assert refusal(pipeline.exchange(f"{signed}.{signature.rstrip(b'=').decode()}")) == REFUSED
    assert why() == "assertion_invalid"


def test_key_of_another_issuer_is_rejected(pipeline: Pipeline) -> None:
    outsider = Key("one")

    token = sign(claims_of("GITHUB", pipeline.server.url), outsider)

    assert refusal(pipeline.exchange(token)) == REFUSED
    assert why() == "assertion_invalid"


def test_headers_with_keys_are_rejected(pipeline: Pipeline) -> None:
    """Keys in the token are ignored, and addresses in it are not requested."""
    outsider = Key("one")
    payload = claims_of("GITHUB", pipeline.server.url)
    url = f"{pipeline.server.url}/evil"
    for header in (
        {"jwk": outsider.public},
        {"jku": url},
        {"x5u": url},
        {"x5c": ["MIIB"]},
        {"jku": url, "kid": "two"},
    ):
        assert refusal(pipeline.exchange(sign(payload, outsider, **header))) == REFUSED
    assert set(pipeline.server.requested) == {DISCOVERY, KEYS}
    # Genuine tokens of the issuer may contain the header, which is ignored.
    good = sign(payload, pipeline.server.keys[0], jku=url, x5t="x")
    assert pipeline.exchange(good).status_code == 200


@pytest.mark.parametrize("more", [{"x": 1}, {"b64": True}])
def test_unknown_critical_header_is_rejected(pipeline: Pipeline, more: dict[str, Any]) -> None:
    payload = claims_of("GITHUB", pipeline.server.url)
    token = sign(payload, pipeline.server.keys[0], crit=list(more), **more)

    assert refusal(pipeline.exchange(token)) == REFUSED
    assert why() == "assertion_invalid"
    assert not pipeline.server.requested


@pytest.mark.parametrize("kid", ["k", "k" * 200])
def test_short_and_long_names_of_keys(pipeline: Pipeline, kid: str) -> None:
    key = Key(kid)
    pipeline.server.keys[:] = [key]

    token = sign(claims_of("GITHUB", pipeline.server.url), key)

    assert pipeline.exchange(token).status_code == 200


def test_used_assertion_is_stored_beyond_its_expiry(pipeline: Pipeline) -> None:
    """Half a minute for how far clocks are apart, and as much for a database that is behind."""
    end = int(dt.datetime.now(dt.UTC).timestamp()) + 300

    assert pipeline.exchange(pipeline.token(exp=end)).status_code == 200

    assert UsedAssertion.objects.get().expires_at.timestamp() == end + 60


def test_lone_surrogate_is_rejected(pipeline: Pipeline) -> None:
    parameters = {**GRANT, "client_id": pipeline.policy_id, "subject_token": "\ud800.e30.e30"}

    answer = pipeline.post(PATH, json.dumps(parameters), "application/json")

    assert (answer.status_code, refusal(answer)) == (400, REFUSED)


NO_TOKENS = {
    "one part": "x",
    "two parts": "e30.e30",
    "no base64": "!.!.!",
    "deep JSON": base64.urlsafe_b64encode(b"[" * 9000).decode() + ".e30.e30",
    "no object": f"{parts([])}.e30.e30",
    "no text": "é.é.é",
    "what is no ASCII in it": "{header}.é{claims}.{signature}",
    "a NUL": "\0.\0.\0",
    "numbers for names": f"{parts({'alg': 5, 'kid': 6})}.e30.e30",
    "a list for an algorithm": f"{parts({'alg': ['ES256'], 'kid': 'one'})}.e30.e30",
    "no key": f"{parts({'alg': 'ES256'})}.e30.e30",
    "no name of a key": f"{parts({'alg': 'ES256', 'kid': ''})}.e30.e30",
    "a long name of a key": f"{parts({'alg': 'ES256', 'kid': 'x' * 201})}.e30.e30",
}


@pytest.mark.parametrize("what", NO_TOKENS)
def test_text_without_a_token_is_rejected(pipeline: Pipeline, what: str) -> None:
    header, claims, signature = pipeline.token().split(".")
    token = NO_TOKENS[what].format(header=header, claims=claims, signature=signature)

    assert refusal(pipeline.exchange(token)) == REFUSED

    assert not pipeline.server.requested


def test_each_changed_part_is_noticed(pipeline: Pipeline) -> None:
    header, claims, signature = pipeline.token().split(".")
    other = parts(claims_of("GITHUB", pipeline.server.url, repository_id="74", ref="x"))
    more = parts({"alg": "ES256", "kid": "one", "typ": "x"})

    for token in (
        f"{header}.{other}.{signature}",
        f"{more}.{claims}.{signature}",
        f"{header}.{claims}.{signature[:-4]}AAAA",
        f"{header}.{claims}.",
    ):
        assert refusal(pipeline.exchange(token)) == REFUSED
        assert why() == "assertion_invalid"


def test_issuer_cannot_sign_for_another_issuer(pipeline_of: PipelineOf) -> None:
    """The same claims, signed by an issuer of the same name with other keys."""
    other = Key("one")
    cluster = {"inline_keys": {"keys": [other.public]}}
    one, two = pipeline_of("KUBERNETES"), pipeline_of("KUBERNETES", of_issuer=cluster)
    payload = claims_of("KUBERNETES", one.server.url)

    assert refusal(one.exchange(sign(payload, other))) == REFUSED
    assert refusal(two.exchange(sign(payload, one.server.keys[0]))) == REFUSED
    assert two.exchange(sign(payload, other)).status_code == 200
