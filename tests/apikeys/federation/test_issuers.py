"""/v1/issuers."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from apikeys import actions
from apikeys.actors import Actor
from apikeys.models import AuditEvent, Issuer, TrustPolicy, User
from tests.apikeys.conftest import KeyOwner, KeyWith, violations, wire
from tests.apikeys.federation.conftest import WRITER, PolicyOf
from tests.conftest import error_reason
from tests.support.issuer import Key

NEW = {"kind": "GITLAB", "name": "our GitLab", "audience": "https://infra.example.com"}
KEYS = {"keys": [Key("a").public]}


def create(client: KeyOwner, **fields: Any) -> Any:
    return client.send("POST", "/v1/issuers", {"issuer": {**NEW, **fields}})


def change(client: KeyOwner, issuer: Issuer, **fields: Any) -> Any:
    return client.send("PATCH", f"/v1/issuers/{issuer.pk}", {"issuer": fields})


def test_omitted_fields_get_the_defaults_of_the_platform(writer: KeyOwner) -> None:
    response = create(writer)

    assert response.status_code == 201
    issuer = Issuer.objects.get()
    assert response.json()["issuer"] == {
        "id": issuer.pk,
        "kind": "GITLAB",
        "name": "our GitLab",
        "url": "https://gitlab.com",
        "audience": "https://infra.example.com",
        "jwks_url": "",
        "inline_keys": None,
        "ca": "",
        "algorithms": ["RS256"],
        "max_assertion_seconds": 3600,
        "keys_fetched_at": None,
        "failures": 0,
        "disabled_at": None,
        "created_at": wire(issuer.created_at),
        "updated_at": wire(issuer.updated_at),
    }
    event = AuditEvent.objects.get(action="issuer.create")
    assert event.resource_id == issuer.pk
    assert event.details["url"] == "https://gitlab.com"


@pytest.mark.both
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"kind": "CUSTOM", "url": "https://gitlab.com"}, "url"),
        ({"kind": "CUSTOM", "url": "https://GITLAB.com./"}, "url"),
        ({"kind": "CUSTOM", "url": "http://accounts.example.com"}, "url"),
        ({"kind": "CUSTOM"}, "url"),
        ({"kind": "KUBERNETES"}, "url"),
        ({"inline_keys": KEYS}, "inline_keys"),
        ({"jwks_url": "https://evil.example.com/keys"}, "jwks_url"),
        ({"ca": "x"}, "ca"),
        (
            {"url": "https://git.example.com", "inline_keys": KEYS, "jwks_url": "https://a.b/c"},
            "jwks_url",
        ),
        ({"url": "https://git.example.com", "jwks_url": "http://a.b/c"}, "jwks_url"),
        ({"url": "https://git.example.com", "inline_keys": {"keys": []}}, "inline_keys"),
        ({"url": "https://git.example.com", "inline_keys": {"keys": "x"}}, "inline_keys"),
        (
            {"url": "https://git.example.com", "inline_keys": {**KEYS, "x": "x" * 65536}},
            "inline_keys",
        ),
        (
            {"url": "https://git.example.com", "inline_keys": {"keys": [{"kty": "oct", "k": "A"}]}},
            "inline_keys",
        ),
        (
            {
                "url": "https://git.example.com",
                "inline_keys": {"keys": [{**KEYS["keys"][0], "d": "AQAB"}]},
            },
            "inline_keys",
        ),
        ({"url": "https://git.example.com", "ca": "no certificate"}, "ca"),
        ({"algorithms": ["none"]}, "issuer.algorithms.0"),
        ({"algorithms": ["HS256"]}, "issuer.algorithms.0"),
        ({"algorithms": []}, "issuer.algorithms"),
        ({"audience": ""}, "issuer.audience"),
        ({"kind": "JENKINS"}, "issuer.kind"),
        ({"max_assertion_seconds": 0}, "issuer.max_assertion_seconds"),
        ({"key_set": {}}, "issuer.key_set"),
    ],
)
def test_invalid_issuer_is_rejected(writer: KeyOwner, fields: dict[str, Any], field: str) -> None:
    response = create(writer, **fields)

    assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
    assert [name for name, _reason in violations(response)] == [field]
    assert not Issuer.objects.exists()


_KEY = KEYS["keys"][0]
_MODULUS = base64.urlsafe_b64encode(b"\xff" * 256).decode().rstrip("=")
_RSA = {"kty": "RSA", "kid": "one", "n": _MODULUS, "e": "AQAB"}
UNDECODABLE = {
    "not base64": {**_RSA, "n": "§"},
    "no modulus": {"kty": "RSA", "kid": "one", "e": "AQAB"},
    "an empty modulus": {**_RSA, "n": ""},
    "a small modulus": {**_RSA, "n": "AQAB"},
    "an even exponent": {**_RSA, "e": "AA"},
    "a point beside the curve": {"kty": "EC", "kid": "one", "crv": "P-256", "x": "eA", "y": "eA"},
    "a short key": {"kty": "OKP", "kid": "one", "crv": "Ed25519", "x": "eA"},
    "no algorithm of ours": {"kty": "EC", "kid": "one", "crv": "secp256k1", "x": "eA", "y": "eA"},
    "no curve": {"kty": "EC", "kid": "one", "x": "eA", "y": "eA"},
}


@pytest.mark.parametrize("key", UNDECODABLE.values(), ids=UNDECODABLE.keys())
def test_keys_that_cannot_be_decoded_are_refused(writer: KeyOwner, key: dict[str, str]) -> None:
    url = "https://git.example.com"
    for keys in ([key], [_KEY, {**key, "kid": "two"}]):
        passed_over = len(keys) > 1 and key.get("kty") == "EC" and key.get("crv") != "P-256"
        response = create(writer, kind="CUSTOM", url=url, inline_keys={"keys": keys})
        if passed_over:
            assert response.status_code == 201
            continue
        assert (response.status_code, error_reason(response)) == (400, "INVALID_FIELDS")
        assert [name for name, _reason in violations(response)] == ["inline_keys"]
        assert keys[-1]["kid"] in response.content.decode()
        assert not Issuer.objects.exists()


def test_a_cluster_that_cannot_be_reached_has_its_keys_inline(writer: KeyOwner) -> None:
    cluster = {"kind": "KUBERNETES", "url": "kubernetes/serviceaccount", "inline_keys": KEYS}

    assert create(writer, **cluster).json()["issuer"]["inline_keys"] == KEYS


def test_an_operator_may_give_the_keys_of_a_platform(operator: User) -> None:
    fields = {**NEW, "kind": "GITHUB", "inline_keys": KEYS}
    issuer = actions.create_issuer(fields=fields, actor=Actor(name="test"))

    assert issuer.url == "https://token.actions.githubusercontent.com"


def test_token_without_the_scope_is_rejected(key_with: KeyWith, issuer: Issuer) -> None:
    other = key_with("apikey:read", "apikey:write", "state:write")

    for answer in (
        other.get("/v1/issuers"),
        other.get(f"/v1/issuers/{issuer.pk}"),
        create(other),
        change(other, issuer, name="x"),
        other.send("POST", f"/v1/issuers/{issuer.pk}:disable"),
    ):
        assert (answer.status_code, error_reason(answer)) == (403, "SCOPE_INSUFFICIENT")


def test_a_bound_caller_reads_only(key_with: KeyWith, issuer: Issuer) -> None:
    from apikeys.bindings import Binding  # noqa: PLC0415 - used here alone

    bound = key_with(*WRITER, binding=Binding(cluster_id=User.objects.get().pk))

    assert bound.get(f"/v1/issuers/{issuer.pk}").status_code == 200
    for answer in (
        create(bound),
        change(bound, issuer, name="x"),
        bound.send("POST", f"/v1/issuers/{issuer.pk}:disable"),
    ):
        assert (answer.status_code, error_reason(answer)) == (403, "BINDING_INSUFFICIENT")


def test_a_list_in_pages_and_filtered(writer: KeyOwner, issuer: Issuer) -> None:
    create(writer)

    first = writer.get("/v1/issuers", {"page_size": 1}).json()
    second = writer.get("/v1/issuers", {"page_token": first["next_page_token"]}).json()
    named = writer.get("/v1/issuers", {"filter": "field['kind'] = 'GITLAB'"}).json()

    assert [one["name"] for one in first["issuers"]] == ["github"]
    assert [one["name"] for one in second["issuers"]] == ["our GitLab"]
    assert [one["name"] for one in named["issuers"]] == ["our GitLab"]


@pytest.mark.parametrize("issuer_id", ["iss-1", "x", "iss-%00"])
def test_unknown_issuer_is_not_found(writer: KeyOwner, issuer_id: str) -> None:
    response = writer.get(f"/v1/issuers/{issuer_id}")

    assert response.status_code == 404
    assert error_reason(response) in {"ISSUER_NOT_FOUND", "NOT_FOUND"}


def test_new_keys_are_fetched_where_their_place_changes(writer: KeyOwner) -> None:
    issuer = Issuer.objects.get(pk=create(writer, url="https://a.example").json()["issuer"]["id"])
    Issuer.objects.update(key_set=KEYS, failures=3)

    assert change(writer, issuer, name="other").status_code == 200
    issuer.refresh_from_db()
    assert (issuer.key_set, issuer.failures) == (KEYS, 3)

    assert change(writer, issuer, url="https://b.example").status_code == 200
    issuer.refresh_from_db()
    assert (issuer.key_set, issuer.failures, issuer.url) == (None, 0, "https://b.example")
    event = AuditEvent.objects.filter(action="issuer.update").latest("id")
    assert event.details == {"url": {"from": "https://a.example", "to": "https://b.example"}}


def test_a_kind_is_for_good(writer: KeyOwner, issuer: Issuer) -> None:
    response = change(writer, issuer, kind="GITLAB")

    assert violations(response) == [("kind", "FIXED")]


def test_a_disabled_issuer_stays_so(writer: KeyOwner, issuer: Issuer) -> None:
    for _ in range(2):
        answer = writer.send("POST", f"/v1/issuers/{issuer.pk}:disable")
        assert answer.status_code == 200
        assert answer.json()["issuer"]["disabled_at"] is not None

    assert error_reason(change(writer, issuer, name="x")) == "ISSUER_DISABLED"
    assert AuditEvent.objects.filter(action="issuer.disable").count() == 1


def _tries(client: KeyOwner, issuer: Issuer) -> list[Any]:
    return [
        change(client, issuer, audience="https://other.example"),
        client.send("POST", f"/v1/issuers/{issuer.pk}:disable"),
    ]


def test_shared_issuer_cannot_be_changed_with_fewer_permissions_than_its_policies(
    writer: KeyOwner, key_with: KeyWith, issuer: Issuer, policy_of: PolicyOf
) -> None:
    policy_of(writer)
    less = key_with("federation:write", "state:read")

    for answer in _tries(less, issuer):
        assert (answer.status_code, error_reason(answer)) == (403, "ISSUER_SHARED")
        # The response does not disclose other policies or their scopes.
        assert "state:write" not in answer.content.decode()
    assert [answer.status_code for answer in _tries(writer, issuer)] == [200, 200]


def test_an_issuer_of_anothers_policies_is_not_theirs(
    writer: KeyOwner, key_with: KeyWith, issuer: Issuer, policy_of: PolicyOf
) -> None:
    policy_of(writer)
    other = key_with(*WRITER, user=User.objects.create(username="other"))

    for answer in _tries(other, issuer):
        assert (answer.status_code, error_reason(answer)) == (403, "ISSUER_SHARED")
    TrustPolicy.objects.disable(TrustPolicy.objects.get().pk)
    assert [answer.status_code for answer in _tries(other, issuer)] == [200, 200]


def test_an_operator_may_always(operator: User, writer: KeyOwner, policy_of: PolicyOf) -> None:
    policy = policy_of(writer)

    actions.disable_issuer(issuer_id=policy.issuer_id, actor=Actor(name="test"))

    assert Issuer.objects.get().disabled_at is not None
