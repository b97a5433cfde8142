"""The holder of a lock in the 423 of another client."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from apikeys.actors import Actor
from apikeys.models import AccessToken, Issuer, TrustPolicy, User
from apikeys.tokens import TokenKind
from states.lock_holders import lock_for
from states.models import State
from tests.conftest import ClientWith, error_reason
from tests.states.conftest import Backend, document, lock_info

RUN = {"repository": "acme/infra", "commit": "8f2c1d7", "run": "417"}
URL = "https://github.com/acme/infra/actions/runs/417"
CONTROL = "\x1b[31m\u202e\u2066\x07\x9b\u2028\r\n"


@pytest.fixture
def pipeline(backend: Backend, client_with: ClientWith, operator: User) -> Backend:
    """The state, seen by a pipeline with a token from an exchange."""
    issuer = Issuer.objects.create(
        kind="GITHUB", url="https://token.actions.githubusercontent.com", audience="x"
    )
    policy = TrustPolicy.objects.create(
        issuer=issuer, owner=operator, name="ci", conditions=[{"claim": "a", "equals": "b"}],
        scopes=["state:write"],
    )  # fmt: skip
    options: dict[str, Any] = {"kind": TokenKind.SERVICE, "trust_policy": policy, "run": RUN}
    client = client_with("state:write", expires_at="2099-01-01T00:00:00Z", **options)
    return backend.as_client(client)


def refused(state: Backend) -> dict[str, Any]:
    response = state.lock(uuid.uuid4(), Who="bob@desk")
    assert (response.status_code, error_reason(response)) == (423, "STATE_LOCKED")
    body: dict[str, Any] = response.json()
    return body


def test_token_run_and_commit_are_named(
    pipeline: Backend, backend: Backend, lock_id: uuid.UUID
) -> None:
    pipeline.lock(lock_id, Who="runner@fv-az1", Info="nightly")
    token = pipeline.client.token

    for body in (refused(backend), backend.push(document()).json()):
        who = f"runner@fv-az1, token {token.name} of {token.created_by.username}"
        assert body["Who"] == who
        run = f"nightly, pipeline run {URL}, commit 8f2c1d7, repository acme/infra"
        assert body["Info"] == run
        assert body["ID"] == str(lock_id)
        assert body["Created"] == lock_info(lock_id)["Created"]
        assert body["error"]["message"].startswith(f"The state is locked by {who} (")
    # Its own lock is as it was sent.
    sent = pipeline.lock(lock_id, Who="runner@fv-az1", Info="nightly").json()
    assert sent == lock_info(lock_id, Who="runner@fv-az1", Info="nightly")


def test_identity_requires_state_read(
    pipeline: Backend, client_with: ClientWith, lock_id: uuid.UUID
) -> None:
    pipeline.lock(lock_id)
    writer = pipeline.as_client(client_with("state:write"))
    assert {**refused(writer), "error": None} == {**lock_info(lock_id), "error": None}
    # Outside of the binding there is no lock.
    elsewhere = client_with("state:read", "state:write", bound_component_ids=[str(uuid.uuid4())])
    assert pipeline.as_client(elsewhere).lock(uuid.uuid4()).status_code == 404


def test_unknown_tokens_are_not_named(backend: Backend, lock_id: uuid.UUID) -> None:
    backend.lock(lock_id)
    taken_by = backend.record.lock_taken_by
    assert taken_by is not None
    State.objects.update(lock_taken_by={**taken_by, "token_id": "tok-removed"})
    body = refused(backend)
    assert (body["Who"], body["Info"]) == (f"ada@laptop, {taken_by['name']}", "")
    # The columns of an earlier lock.
    State.objects.update(lock_taken_by={**taken_by, "lock_id": str(uuid.uuid4())})
    assert refused(backend)["Who"] == "ada@laptop"
    State.objects.update(lock_taken_by=None)
    assert refused(backend)["Who"] == "ada@laptop"


def test_texts_are_safe_to_print(pipeline: Backend, backend: Backend, lock_id: uuid.UUID) -> None:
    long = CONTROL + "a" * 9_000
    texts = dict.fromkeys(("Who", "Info", "Operation", "Version", "Path"), long)
    sent = str(lock_id).upper()
    pipeline.send("LOCK", json.dumps({**lock_info(sent), **texts}))
    AccessToken.objects.filter(pk=pipeline.client.token.pk).update(
        name=CONTROL + "n" * 180, run=dict.fromkeys(RUN, CONTROL + "r" * 5_000)
    )

    body = refused(backend)

    assert body["ID"] == sent
    del body["error"]["details"]
    assert all(text.isprintable() for text in (*map(str, body.values()),))
    assert len(json.dumps(body)) < 8_000
    assert body["Who"].startswith("[31m aaa")
    shortened = "[31m " + "a" * 194 + "…"
    assert [body[name] for name in ("Operation", "Version", "Path")] == [shortened] * 3


def test_operators_and_commands_see_the_client_alone(pipeline: Backend, lock_id: uuid.UUID) -> None:
    """The names of tokens in the admin require a permission that this rule does not know."""
    pipeline.lock(lock_id)
    for actor in (None, Actor(name="ada"), Actor.of_command("import_states")):
        assert lock_for(pipeline.record, actor).as_dict() == lock_info(lock_id)
