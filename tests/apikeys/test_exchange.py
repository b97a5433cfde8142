"""POST /v1/oauth/token."""

from __future__ import annotations

import base64
import datetime as dt
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from apikeys.actions import exchange
from apikeys.actions.expired import remove_expired_assertions
from apikeys.actors import Actor
from apikeys.federation.exchange_errors import AssertionRefused
from apikeys.models import AccessToken, AuditEvent, Issuer, TrustPolicy, UsedAssertion, User
from apikeys.tokens import TokenKind, kind_of
from infra_service.lib.api import limits, throttling
from infra_service.lib.api.counters import MemoryCounters
from infra_service.lib.api.limits import Limiter
from tests.apikeys.conftest import KeyClient, KeyOwner
from tests.apikeys.exchanging import (
    FORM,
    GRANT,
    PATH,
    REFUSED,
    Pipeline,
    PipelineOf,
    refusal,
    why,
)
from tests.conftest import error_reason
from tests.support.issuer import CLAIMS, RUNS


@pytest.mark.parametrize("kind", CLAIMS)
def test_token_of_each_platform_is_exchanged(pipeline_of: PipelineOf, kind: str) -> None:
    job = pipeline_of(kind)
    jti = "one" if kind != "BUILDKITE" else None

    answer = job.exchange(job.token(jti=jti))

    token = AccessToken.objects.get()
    secret = answer.json()["access_token"]
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    assert answer.json() == {
        "access_token": secret,
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "token_type": "Bearer",
        "expires_in": 3600,
        "scope": "state:read state:write",
    }
    assert kind_of(secret) is TokenKind.SERVICE
    caller = KeyClient(secret).get("/v1/whoami").json()["caller"]
    assert (caller["trust_policy_id"], caller["api_key_id"]) == (job.policy_id, None)
    assert caller["scopes"] == ["state:read", "state:write"]
    run = {"jti": jti, "sub": CLAIMS[kind]["sub"], **RUNS[kind]}
    assert token.run == run
    assert (token.name, token.kind, token.trust_policy_id) == ("deploy", "SERVICE", job.policy_id)
    assert job.policy.last_run == run
    assert job.policy.last_used_at == token.created_at


def test_exchange_is_recorded(pipeline: Pipeline) -> None:
    answer = pipeline.exchange()

    event, token = AuditEvent.objects.get(), AccessToken.objects.get()
    assert (event.action, event.resource_id) == ("access_token.exchange", token.pk)
    assert (event.actor_name, event.actor_id) == ("operator", token.created_by_id)
    assert (event.token_id, event.address) == (token.pk, "127.0.0.1")
    assert event.request_id == answer["X-Request-ID"]
    assert event.details == {
        "name": "deploy",
        "scopes": ["state:read", "state:write"],
        "expires_at": token.expires_at and token.expires_at.isoformat(),
        "binding": None,
        "kind": "SERVICE",
        "api_key_id": None,
        "trust_policy_id": pipeline.policy_id,
        "run": token.run,
    }


def test_it_is_in_the_list_of_its_owner(pipeline: Pipeline, owner: KeyOwner) -> None:
    pipeline.exchange()

    path = f"/v1/access-tokens?filter=field['trust_policy_id'] = '{pipeline.policy_id}'"
    (shown,) = owner.get(path).json()["access_tokens"]
    assert shown["trust_policy_id"] == pipeline.policy_id
    assert shown["run"]["repository"] == "octo/infra"


def test_json_body_is_accepted(pipeline: Pipeline) -> None:
    body: dict[str, Any] = {**GRANT, "client_id": pipeline.policy_id, "ttl": 900}
    body["subject_token"] = pipeline.token()

    answer = pipeline.post(PATH + "/", json.dumps(body), "application/json")

    assert answer.json()["expires_in"] == 900


def test_unknown_parameters_are_ignored(pipeline: Pipeline) -> None:
    assert pipeline.exchange(colour="red", scope="", ttl="").status_code == 200


NARROWER: dict[str, tuple[dict[str, str], int, str]] = {
    "scopes": ({"scope": "state:read"}, 3600, "state:read"),
    "the same scope twice": ({"scope": "state:read state:read"}, 3600, "state:read"),
    "time": ({"ttl": "60"}, 60, "state:read state:write"),
    "time with its unit": ({"ttl": "7200s"}, 7200, "state:read state:write"),
}


@pytest.mark.parametrize("what", NARROWER)
def test_narrower_requests(pipeline_of: PipelineOf, what: str) -> None:
    parameters, seconds, scope = NARROWER[what]

    answer = pipeline_of(max_token_seconds=7200).exchange(**parameters).json()

    assert (answer["expires_in"], answer["scope"]) == (seconds, scope)


WIDER: dict[str, tuple[dict[str, str], str, str]] = {
    "a scope": (
        {"scope": "state:read state:admin"}, "invalid_scope",
        "The policy does not grant these scopes.",
    ),
    "time": ({"ttl": "3601"}, "invalid_request", "ttl: the policy allows at most 3600 seconds."),
}  # fmt: skip


@pytest.mark.parametrize("what", WIDER)
def test_wider_requests_are_rejected(pipeline: Pipeline, what: str) -> None:
    parameters, error, description = WIDER[what]
    token = pipeline.token()

    answer = pipeline.exchange(token, **parameters)

    assert answer.status_code == 400
    assert refusal(answer) == {"error": error, "error_description": description}
    assert why() == error
    # It was not used by that.
    assert pipeline.exchange(token).status_code == 200


def test_narrow_policy_limits_the_token(pipeline_of: PipelineOf) -> None:
    soon = timezone.now() + dt.timedelta(minutes=10)
    binding = {"bound_component_ids": ["00000000-0000-4000-8000-000000000001"]}
    job = pipeline_of(max_token_seconds=1800, scopes=["state:read"], **binding)

    assert job.exchange().json()["expires_in"] == 1800
    TrustPolicy.objects.update(expires_at=soon)
    job.exchange()

    longer, shorter = AccessToken.objects.order_by("id")
    assert longer.bound_component_ids == binding["bound_component_ids"]
    assert shorter.expires_at == soon
    assert job.policy.revision == 0


INVALID_REQUESTS: dict[str, tuple[dict[str, str | None], str]] = {
    "no grant type": ({"grant_type": None}, "invalid_request"),
    "another grant type": ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
    "no type of the token": ({"subject_token_type": None}, "invalid_request"),
    "a token of another type": (
        {"subject_token_type": "urn:ietf:params:oauth:token-type:saml2"}, "invalid_request",
    ),
    "no token": ({"subject_token": None}, "invalid_request"),
    "no policy": ({"client_id": None}, "invalid_request"),
    "no id of a policy": ({"client_id": "fed-\0"}, "invalid_request"),
    "another answer": (
        {"requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token"},
        "invalid_request",
    ),
    "for another service": ({"audience": "https://elsewhere.example"}, "invalid_target"),
    "for another resource": ({"resource": "https://elsewhere.example"}, "invalid_target"),
    "for somebody else": ({"actor_token": "x"}, "invalid_request"),
    "with a secret": ({"client_secret": "x"}, "invalid_request"),
    "no scope": ({"scope": " "}, "invalid_scope"),
    "no time": ({"ttl": "0"}, "invalid_request"),
    "too much time": ({"ttl": "43201"}, "invalid_request"),
    "a word for a time": ({"ttl": "1h"}, "invalid_request"),
}  # fmt: skip


@pytest.mark.both
@pytest.mark.parametrize("what", INVALID_REQUESTS)
def test_invalid_requests_are_rejected(pipeline: Pipeline, what: str) -> None:
    change, error = INVALID_REQUESTS[what]
    good = {**GRANT, "client_id": pipeline.policy_id, "subject_token": pipeline.token()}
    parameters = {name: value for name, value in {**good, **change}.items() if value is not None}

    answer = pipeline.post(PATH, urlencode(parameters), FORM)

    assert (answer.status_code, answer.json()["error"]) == (400, error)
    assert answer["Cache-Control"] == "no-store"
    assert not AccessToken.objects.exists()
    assert not AuditEvent.objects.exists()


def bodies(job: Pipeline) -> dict[str, tuple[str | bytes, str]]:
    good = {**GRANT, "client_id": job.policy_id, "subject_token": job.token()}
    form, as_json = urlencode(good), json.dumps(good)
    return {
        "twice in a form": (f"{form}&scope=state:read&scope=state:write", FORM),
        "twice and the same": (f"{form}&client_id={job.policy_id}", FORM),
        "twice in JSON": (as_json[:-1] + ', "scope": "a", "scope": "b"}', "application/json"),
        "a number": (as_json[:-1] + ', "scope": 1}', "application/json"),
        "a boolean for a time": (as_json[:-1] + ', "ttl": true}', "application/json"),
        "a list": ("[]", "application/json"),
        "no JSON": ("{", "application/json"),
        "deep JSON": ('{"a":' + "[" * 9000, "application/json"),
        "no UTF-8": (b"\xff" + form.encode(), FORM),
        "no UTF-8 within": (f"{form}&scope=%ff", FORM),
        "many parameters": (form + "".join(f"&a{n}=1" for n in range(60)), FORM),
        "nothing that is known": ("a=1", FORM),
    }


BODIES = (
    "twice in a form", "twice and the same", "twice in JSON", "a number", "a boolean for a time",
    "a list", "no JSON", "deep JSON", "no UTF-8", "no UTF-8 within", "many parameters",
    "nothing that is known",
)  # fmt: skip


@pytest.mark.both
@pytest.mark.parametrize("what", BODIES)
def test_invalid_body_is_rejected(pipeline: Pipeline, what: str) -> None:
    body, media_type = bodies(pipeline)[what]

    answer = pipeline.post(PATH, body, media_type)

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert not AccessToken.objects.exists()


def test_long_body_is_rejected(pipeline: Pipeline) -> None:
    answer = pipeline.exchange(padding="x" * 16 * 1024)

    assert (answer.status_code, error_reason(answer)) == (413, "REQUEST_TOO_LARGE")


def test_other_media_type_is_rejected(pipeline: Pipeline) -> None:
    answer = pipeline.post(PATH, b"x", "text/plain")

    assert (answer.status_code, error_reason(answer)) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_other_method_is_rejected(pipeline: Pipeline) -> None:
    assert error_reason(pipeline.get(PATH)) == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize(
    "header", ["Bearer x", "Basic " + base64.b64encode(b"fed-1:x").decode(), "x"]
)
def test_other_credentials_are_rejected(pipeline: Pipeline, header: str) -> None:
    """A request with two credentials is rejected."""
    given = {**GRANT, "client_id": pipeline.policy_id, "subject_token": pipeline.token()}

    answer = pipeline.post(PATH, urlencode(given), FORM, headers={"Authorization": header})

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


ENDS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "the policy is disabled": (TrustPolicy, {"disabled_at": timezone.now()}, "policy_disabled"),
    "its issuer is disabled": (Issuer, {"disabled_at": timezone.now()}, "issuer_disabled"),
    "its owner is not active": (User, {"is_active": False}, "owner_inactive"),
    "the policy has expired": (
        TrustPolicy,
        {
            "created_at": timezone.now() - dt.timedelta(days=2),
            "expires_at": timezone.now() - dt.timedelta(days=1),
        },
        "policy_expired",
    ),
}


@pytest.mark.parametrize("what", ENDS)
def test_disabled_or_expired_policy_rejects_exchange_and_invalidates_tokens(
    pipeline: Pipeline, what: str
) -> None:
    """In the middle of a run: the next request is refused."""
    client = KeyClient(pipeline.exchange().json()["access_token"])
    assert client.get("/api/v1/states").status_code == 200
    model, change, reason = ENDS[what]

    model.objects.update(**change)

    assert client.get("/api/v1/states").status_code == 401
    answer = pipeline.exchange()
    assert (answer.status_code, refusal(answer)) == (400, REFUSED)
    assert why() == reason


def test_narrowed_policy_narrows_its_tokens(pipeline: Pipeline) -> None:
    client = KeyClient(pipeline.exchange().json()["access_token"])

    TrustPolicy.objects.change(
        scopes=["state:read"], bound_component_ids=["00000000-0000-4000-8000-000000000001"]
    )

    caller = client.get("/v1/whoami").json()["caller"]
    assert caller["scopes"] == ["state:read"]
    assert caller["binding"]["component_ids"] == ["00000000-0000-4000-8000-000000000001"]


def test_there_is_no_such_policy(pipeline: Pipeline) -> None:
    """The response is the same, and guesses do not fill the audit log."""
    answer = pipeline.exchange(client_id="fed-0")

    assert (answer.status_code, refusal(answer)) == (400, REFUSED)
    assert not AuditEvent.objects.exists()


UNTRUSTED: dict[str, tuple[str, dict[str, Any], str]] = {
    "another repository": ("GITHUB", {"repository_id": "75"}, "conditions_unmet"),
    "a repository of another": ("GITHUB", {"repository_owner_id": "66"}, "conditions_unmet"),
    "another environment": ("GITHUB", {"environment": "review"}, "conditions_unmet"),
    "no environment": ("GITHUB", {"environment": None}, "conditions_unmet"),
    "a stranger's pull request": (
        "GITHUB", {"event_name": "pull_request_target"}, "event_untrusted",
    ),
    "a branch that is not protected": ("GITLAB", {"ref_protected": "false"}, "conditions_unmet"),
    "a fork's merge request": (
        "GITLAB", {"pipeline_source": "merge_request_event"}, "event_untrusted",
    ),
    "a job of another project": ("GITLAB", {"job_project_id": "23"}, "event_untrusted"),
    "a service account of the same name": (
        "KUBERNETES",
        {"kubernetes.io": {**CLAIMS["KUBERNETES"]["kubernetes.io"], "serviceaccount": {
            "name": "deployer", "uid": "another"}}},
        "conditions_unmet",
    ),
    "another pipeline": ("BUILDKITE", {"pipeline_id": "another"}, "conditions_unmet"),
    "a branch in a folder": ("BUILDKITE", {"build_branch": "main/x"}, "conditions_unmet"),
}  # fmt: skip


@pytest.mark.both
@pytest.mark.parametrize("user", UNTRUSTED)
def test_untrusted_jobs_are_rejected(pipeline_of: PipelineOf, user: str) -> None:
    kind, claims, reason = UNTRUSTED[user]
    job = pipeline_of(kind)

    answer = job.exchange(job.token(**claims))

    assert (answer.status_code, refusal(answer)) == (400, REFUSED)
    assert why() == reason
    assert AuditEvent.objects.get().details["run"]["sub"] == CLAIMS[kind]["sub"]
    assert not AccessToken.objects.exists()


def test_audit_log_records_unmet_conditions(pipeline: Pipeline, capfd: Any) -> None:
    token = pipeline.token(environment="review\0", repository_id="75")

    answer = pipeline.exchange(token)

    event = AuditEvent.objects.get()
    assert (event.action, event.resource_id) == ("assertion.refuse", pipeline.policy_id)
    assert (event.actor_name, event.actor_id, event.address) == ("", None, "127.0.0.1")
    assert event.request_id == answer["X-Request-ID"]
    assert event.details["unmet"] == [
        {"claim": "repository_id", "wanted": {"equals": "74"}, "had": "75"},
        {
            "claim": "environment",
            "wanted": {"in": ["staging", "production"]},
            "had": "review\ufffd",
        },
    ]
    assert event.details["run"]["repository"] == "octo/infra"
    logged = capfd.readouterr().err
    (line,) = [line for line in logged.splitlines() if "assertion_refused" in line]
    logged_event = json.loads(line)
    assert (logged_event["reason"], logged_event["trust_policy_id"]) == (
        "conditions_unmet",
        pipeline.policy_id,
    )
    assert token not in logged


@pytest.mark.parametrize(
    ("claim", "kept"),
    [
        ([[[["deep"]]]], [["[['deep']]"]]),
        ({"a": {"b": {"c": {"d": 1}}}}, {"a": {"b": "{'c': {'d': 1}}"}}),
        ("x" * 501, "x" * 500),
    ],
)
def test_the_trail_keeps_no_deep_and_no_long_claims(
    pipeline: Pipeline, claim: Any, kept: Any
) -> None:
    assert refusal(pipeline.exchange(pipeline.token(environment=claim))) == REFUSED

    (unmet,) = AuditEvent.objects.get().details["unmet"]
    assert unmet["had"] == kept


@pytest.fixture
def one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters of the test's own, in a minute that does not end."""
    limiter = Limiter(MemoryCounters())
    for place in (exchange, throttling):
        monkeypatch.setattr(place, "limiter", lambda: limiter)
    monkeypatch.setattr(limits.time, "time", lambda: 1_800_000_000.0)


@pytest.mark.usefixtures("one_minute")
def test_the_trail_is_not_filled_by_refusals(pipeline: Pipeline) -> None:
    for _ in range(63):
        assert refusal(pipeline.exchange("no token")) == REFUSED

    assert AuditEvent.objects.count() == 60


@pytest.mark.usefixtures("one_minute")
def test_refusals_count_for_their_address(pipeline: Pipeline, settings: Any) -> None:
    settings.RATE_LIMIT_FAILURES = 3

    answers = [pipeline.exchange("no token") for _ in range(4)]

    assert [answer.status_code for answer in answers] == [400, 400, 400, 429]
    assert error_reason(answers[-1]) == "RATE_LIMITED"
    assert pipeline.exchange().status_code == 200


@pytest.mark.usefixtures("one_minute")
def test_exchanges_count_for_their_policy(pipeline: Pipeline, settings: Any) -> None:
    settings.RATE_LIMIT_KEY = 2

    answers = [pipeline.exchange() for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert AccessToken.objects.count() == 2


def test_assertion_can_be_used_once(pipeline_of: PipelineOf) -> None:
    job = pipeline_of()
    other = pipeline_of()
    token = job.token()
    assert job.exchange(token).status_code == 200

    assert refusal(job.exchange(token)) == REFUSED
    assert why() == "assertion_used"
    # Nor by another policy of an issuer with the same name.
    assert refusal(other.exchange(token)) == REFUSED
    assert AccessToken.objects.count() == 1
    assert UsedAssertion.objects.get().expires_at > timezone.now() + dt.timedelta(minutes=5)


def test_assertion_without_an_id_can_be_used_once(pipeline: Pipeline) -> None:
    """Another signature of the same content is the same assertion."""
    token = pipeline.token(jti=None)
    signed, _, signature = token.rpartition(".")
    raw = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    other_s = (order - int.from_bytes(raw[32:], "big")).to_bytes(32, "big")
    again = base64.urlsafe_b64encode(raw[:32] + other_s).rstrip(b"=").decode()
    assert pipeline.exchange(token).status_code == 200

    assert refusal(pipeline.exchange(f"{signed}.{again}")) == REFUSED
    assert why() == "assertion_used"
    # Without an ID, assertions with different claims count as different.
    assert pipeline.exchange(pipeline.token(jti=None, run_attempt="2")).status_code == 200


# Also a change by SQL alone, which leaves the revision unchanged.
@pytest.mark.parametrize("by_sql", [False, True])
@pytest.mark.parametrize("changed", [TrustPolicy, Issuer])
def test_concurrent_change_of_policy_or_issuer_is_detected(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, changed: Any, *, by_sql: bool
) -> None:
    verify = exchange.verify

    def and_change(*args: Any) -> Any:
        verified = verify(*args)
        if by_sql:
            changed.objects.update(disabled_at=timezone.now())
        else:
            changed.objects.change(name="changed")
        return verified

    monkeypatch.setattr(exchange, "verify", and_change)
    token = pipeline.token()

    assert refusal(pipeline.exchange(token)) == REFUSED

    assert why() == "policy_changed"
    assert not UsedAssertion.objects.exists()


def test_concurrent_expiry_of_the_policy_is_detected(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = pipeline.policy
    proof = exchange.Proof(policy, exchange.verify(pipeline.token(), policy.issuer))
    policy.expires_at = now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)

    with pytest.raises(AssertionRefused) as refused:
        exchange.exchange_assertion(proof=proof, scopes=None, ttl=None, actor=Actor(name=""))

    assert refused.value.reason == "policy_expired"


def test_assertions_that_have_expired_are_forgotten(pipeline: Pipeline) -> None:
    pipeline.exchange()
    UsedAssertion.objects.update(expires_at=timezone.now() - dt.timedelta(seconds=1))
    pipeline.exchange()

    assert list(remove_expired_assertions()) == [1]
    assert UsedAssertion.objects.get().expires_at > timezone.now()
