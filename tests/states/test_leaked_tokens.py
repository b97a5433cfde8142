"""Service tokens in documents: reported once, listed while valid, revoked if configured."""

from __future__ import annotations

import base64
import datetime as dt
import json
from typing import Any

import pytest
from django.db import DataError
from django.utils import timezone

from apikeys import actions, tokens
from apikeys.actors import Actor
from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from apikeys.scopes import Scope
from apikeys.tokens import TokenKind
from infra_service.operations.housekeeping import parts
from states.document import sealing
from states.document.contents import LoadedDocument
from states.models import LeakedToken, State
from states.resources import indexing
from states.resources.leaked_tokens import newest_working
from states.resources.leaks import MOST_CHARACTERS, find_leaks
from tests.states.conftest import Backend
from tests.states.indexed import index
from tests.states.samples import ENCRYPTED, instance, resource, state
from tests.support.people import person, text_of

ACTOR = Actor(name="test")
HOUR = dt.timedelta(hours=1)


def issued(owner: User, kind: TokenKind = TokenKind.SERVICE) -> tuple[AccessToken, str]:
    return actions.issue_access_token(
        kind=kind, user=owner, name="ci", scopes=[Scope.STATE_READ], expires_at=None, actor=ACTOR
    )


def created(owner: User) -> tuple[ApiKey, str]:
    return actions.create_api_key(
        user_id=owner.pk, name="laptop", scopes=[Scope.STATE_READ], expires_at=None, actor=ACTOR
    )


def remote_state(password: str) -> dict[str, Any]:
    """Return a state with a terraform_remote_state whose config holds a password."""
    config = {"value": {"address": "http://x", "password": password}, "type": ["object", {}]}
    read = instance({"backend": "http", "config": config, "outputs": {}})
    return resource("network", read, type="terraform_remote_state", mode="data")


def pushed(backend: Backend, document: bytes, serial: int = 1) -> None:
    body = json.dumps({**json.loads(document), "serial": serial}).encode()
    assert backend.push(body).status_code == 200
    index()


def events() -> list[dict[str, Any]]:
    found = AuditEvent.objects.filter(action="state.token_found").order_by("id")
    return list(found.values_list("details", flat=True))


def test_tokens_in_a_document_that_cannot_be_indexed_are_reported(
    backend: Backend, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(_state: State, resources: Any) -> None:
        if resources:
            raise DataError("too long")

    monkeypatch.setattr(indexing, "write_entries", write)
    _token, secret = issued(operator)
    pushed(backend, state(remote_state(secret)))

    assert State.objects.get().index_problem == indexing.UNEXPECTED
    assert len(events()) == 1


def shown() -> list[str]:
    lying, _ = newest_working(100)
    return sorted(one.exposed.credential.pk for one in lying)


def test_all_kinds_are_reported_with_their_locations(backend: Backend, operator: User) -> None:
    key, secret_of_key = created(operator)
    personal, secret_of_personal = issued(operator, TokenKind.PERSONAL)
    service, secret_of_service = issued(operator)
    header = base64.b64encode(f"token:{secret_of_personal}".encode()).decode()
    environment = [{"name": "A", "value": json.dumps({"x": f"Basic {header}"})}]
    pushed(
        backend,
        state(
            remote_state(secret_of_key),
            resource("pod", instance({"env": environment}, index_key="a"), module="module.m"),
            outputs={"token": {"value": {"inner": secret_of_service}, "type": "string"}},
        ),
    )

    assert {event["found"]: event["address"] for event in events()} == {
        key.pk: "data.terraform_remote_state.network.config.value.password",
        personal.pk: 'module.m.thing.pod["a"].env[0].value',
        service.pk: "output.token.inner",
    }
    assert all(event["version"] == 1 for event in events())
    (recorded, *_) = AuditEvent.objects.filter(action="state.token_found")
    assert (recorded.resource_id, recorded.actor_name) == (
        str(backend.record.pk),
        "command index_states",
    )
    assert shown() == sorted([key.pk, personal.pk, service.pk])
    stored = repr([*AuditEvent.objects.values(), *LeakedToken.objects.values()])
    for secret in (secret_of_key, secret_of_personal, secret_of_service):
        assert secret not in stored


def test_finding_is_reported_once_per_state_and_token(
    backend: Backend, client_with: Any, operator: User
) -> None:
    _, first = issued(operator)
    _, second = issued(operator)
    for serial in (1, 2):
        pushed(backend, state(remote_state(first)), serial)
    pushed(backend, state(), 3)  # old versions keep it
    assert len(events()) == len(shown()) == 1
    pushed(backend, state(remote_state(second), outputs={"o": {"value": first}}), 4)
    assert len(events()) == 2
    other = Backend(client_with("state:write"))
    pushed(other, state(remote_state(first)))
    assert len(events()) == len(shown()) == 3


def test_invalid_tokens_are_not_reported(backend: Backend, operator: User) -> None:
    revoked, secret_of_revoked = issued(operator)
    actions.revoke_access_token(token=revoked, actor=ACTOR)
    expired, secret_of_expired = issued(operator)
    AccessToken.objects.filter(pk=expired.pk).update(
        created_at=timezone.now() - 2 * HOUR, expires_at=timezone.now() - HOUR
    )
    gone = User.objects.create_user("gone", is_active=False)
    _, secret_of_gone = issued(gone)
    unknown = tokens.generate(TokenKind.SERVICE)
    secrets = (secret_of_revoked, secret_of_expired, secret_of_gone, unknown)
    pushed(backend, state(*map(remote_state, secrets)))

    assert (events(), shown(), LeakedToken.objects.count()) == ([], [], 0)


def test_rotation_resolves_the_finding(backend: Backend, operator: User) -> None:
    key, secret = created(operator)
    pushed(backend, state(remote_state(secret)))
    assert shown() == [key.pk]

    actions.rotate_api_key(keys=ApiKey.objects.all(), key_id=key.pk, grace_period=HOUR, actor=ACTOR)
    assert shown() == [key.pk]
    ApiKey.objects.filter(pk=key.pk).update(previous_digest_expires_at=timezone.now() - HOUR)
    assert shown() == []


def test_rows_end_with_their_tokens(backend: Backend, operator: User) -> None:
    ended, secret = issued(operator)
    other, secret_of_other = issued(operator)
    pushed(backend, state(remote_state(secret)))
    actions.revoke_access_token(token=ended, actor=ACTOR)
    pushed(backend, state(remote_state(secret_of_other)), 2)
    assert LeakedToken.objects.count() == 1  # the next push has taken the row along

    assert sum(parts.PARTS["tokens"]()) == 0
    actions.revoke_access_token(token=other, actor=ACTOR)
    assert sum(parts.PARTS["tokens"]()) == 1


def test_setting_revokes_leaked_tokens(backend: Backend, operator: User, settings: Any) -> None:
    token, secret = issued(operator)
    key, secret_of_key = created(operator)
    rotated, old = created(operator)
    actions.rotate_api_key(
        keys=ApiKey.objects.all(), key_id=rotated.pk, grace_period=HOUR, actor=ACTOR
    )
    document = state(*map(remote_state, (secret, secret_of_key, old)))
    pushed(backend, document)
    assert not AuditEvent.objects.filter(action__endswith=".revoke").exists()

    settings.REVOKE_TOKENS_IN_STATES = True
    pushed(backend, document, 2)  # also the tokens of the earlier version

    revoked = AuditEvent.objects.filter(action__endswith=".revoke")
    assert {event.resource_id for event in revoked} == {token.pk, key.pk}
    assert {event.actor_name for event in revoked} == {"command index_states"}
    # The secret that it has now lies nowhere.
    assert ApiKey.objects.get(pk=rotated.pk).revoked_at is None
    assert len(events()) == 3


@pytest.mark.parametrize("how", ["encrypted", "elsewhere", "old format"])
def test_tokens_in_unreadable_documents_and_odd_places_are_found(
    how: str, backend: Backend, operator: User
) -> None:
    token, secret = issued(operator)
    document = {
        "encrypted": {**json.loads(ENCRYPTED), "meta": {"x": secret}},
        "elsewhere": {**json.loads(state()), "check_results": [secret]},
        "old format": {"version": 3, "serial": 1, "lineage": "l", "modules": [secret]},
    }[how]
    pushed(backend, json.dumps(document).encode())

    assert events() == [{"found": token.pk, "version": 1, "address": ""}]


def test_addresses_are_without_tokens_and_short() -> None:
    secret = tokens.generate(TokenKind.SERVICE)
    escaped = "\\u0069" + secret[1:]
    for document, address in {
        state(resource("a", instance({secret: "x"}))): "thing.a",
        state(resource("a", instance({"m": {secret: {"in": [secret]}}}))): "thing.a.m",
        state(resource("a", instance({"m": [{escaped: 1, "z": 2}]}))): "thing.a.m[0]",
        state(resource("a", instance({"x": secret}, index_key=secret))): "….x",
        state(outputs={"\n\0é": {"value": secret}}): "output.??é",
        state(outputs={"o" * 600: {"value": secret}}): f"output.{'o' * 600}"[:MOST_CHARACTERS],
        state(outputs={"deep": {"value": [[[[secret]]]]}}): "output.deep[0][0][0][0]",
        b"[" * 5 + json.dumps(secret).encode() + b"]" * 5: "",
    }.items():
        (leak,) = find_leaks(LoadedDocument(sealing.compress(document)))
        assert leak == (secret, address)


def test_overview_shows_the_finding(backend: Backend, operator: User) -> None:
    _, secret = issued(operator)
    page = "/admin/"
    assert "0 Active keys and tokens in states" in text_of(person("viewer").get(page))
    pushed(backend, state(remote_state(secret)))

    text = text_of(person("viewer").get(page))
    assert "access token ci at data.terraform_remote_state.network.config.value.password" in text
    found = person("viewer").get(page).context["overview"]["attention"]
    ((_, url),) = next(one.links for one in found if one.name == "leaked")
    assert person("viewer").get(url).context["cl"].result_count == 1
