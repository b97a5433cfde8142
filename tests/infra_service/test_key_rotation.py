"""rotate_state_keys and verify_states, for all that the encryption keys protect but documents."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from infra_service.lib.api.idempotent_requests import IdempotentRequest
from infra_service.webhooks import secrets
from infra_service.webhooks.models import WebhookEndpoint
from states.errors import DocumentKeyMissing
from tests.conftest import ApiClient
from tests.states.conftest import Backend
from tests.states.indexed import found, index, with_things
from tests.states.test_documents import new_key

KINDS = ("documents", "webhook_secrets", "idempotent_answers", "resource_digests")
pytestmark = pytest.mark.django_db


def run(command: str) -> Any:
    """Return the outcome as JSON, with the error of the command and the lines of problems."""
    out, err = io.StringIO(), io.StringIO()
    error = ""
    try:
        call_command(command, json=True, stdout=out, stderr=err)
    except CommandError as raised:
        error = str(raised)
    return json.loads(out.getvalue()), error, err.getvalue().splitlines()


@pytest.fixture
def hook(client_with: Any) -> WebhookEndpoint:
    """An endpoint with a replaced secret; secrets and URL use the key of the settings."""
    client: ApiClient = client_with("webhook:write", "cluster:read")
    body = {"name": "a", "url": "https://hooks.example.com/x", "event_types": ["cluster.create"]}
    made = client.send("POST", "/api/v1/webhooks", {"webhook": body})
    assert made.status_code == 201, made.content
    endpoint = WebhookEndpoint.objects.get()
    endpoint.retired_secret, endpoint.retired_encryption_key = secrets.encrypt(
        b"retired", endpoint.pk
    )
    endpoint.retired_secret_until = timezone.now() + dt.timedelta(hours=1)
    endpoint.save()
    return endpoint


@pytest.fixture
def answer() -> IdempotentRequest:
    request = IdempotentRequest.objects.create(pk="0" * 64, fingerprint="1" * 64)
    request.store(200, b"the answer", has_secret=True)
    return request


@pytest.fixture
def pushed(client_with: Any) -> Backend:
    backend = Backend(client_with("state:read", "state:write"))
    backend.push(with_things(1, a="i-a"))
    index()
    return backend


def test_everything_gets_the_first_key(
    hook: WebhookEndpoint, answer: IdempotentRequest, pushed: Backend, settings: Any
) -> None:
    signing = hook.signing_secrets()
    new = new_key()
    settings.STATE_ENCRYPTION_KEYS = [new, *settings.STATE_ENCRYPTION_KEYS]
    older, error, _ = run("verify_states")
    assert (older["need_older_keys"], error) == (
        {**dict.fromkeys(KINDS, 1), "webhook_secrets": 3, "second_factors": 0},
        "",
    )

    done, error, problems = run("rotate_state_keys")

    assert done.pop("reencrypted") == done["documents"]["reencrypted"]
    # Second factors need the extra (tests/infra_service/sign_on/test_second_factor.py).
    assert done.pop("second_factors") == {"reencrypted": 0, "failed": 0}
    assert done == {kind: {"reencrypted": 1, "failed": 0} for kind in KINDS}
    assert (error, problems) == ("", [])
    settings.STATE_ENCRYPTION_KEYS = [new]
    checked, error, problems = run("verify_states")
    assert (checked["need_older_keys"], error, problems) == (
        {**dict.fromkeys(KINDS, 0), "second_factors": 0}, "", [],
    )  # fmt: skip
    assert len(signing) == 2
    hook.refresh_from_db()
    assert hook.signing_secrets() == signing
    answer.refresh_from_db()
    assert answer.answer_body() == b"the answer"
    assert found("i-a") == ["thing.a"]
    assert pushed.get().status_code == 200


def test_values_whose_key_is_missing(
    hook: WebhookEndpoint, answer: IdempotentRequest, pushed: Backend, settings: Any
) -> None:
    settings.STATE_ENCRYPTION_KEYS = [new_key()]

    _, error, problems = run("verify_states")

    assert error == "1 of 1 documents cannot be read"
    assert f"webhook {hook.pk}: Its encryption key is not configured." in problems
    assert f"idempotent response {answer.pk}: Its encryption key is not configured." in problems

    done, error, problems = run("rotate_state_keys")

    del done["reencrypted"]
    failed = {name: counts["failed"] for name, counts in done.items()}
    assert failed == {
        **dict.fromkeys(KINDS, 1),
        "webhook_secrets": 3,
        "resource_digests": 0,
        "second_factors": 0,
    }
    assert error.startswith("5 values not re-encrypted")
    state_id = pushed.record.pk
    assert problems == [
        f"failed: state {state_id} version 1: {DocumentKeyMissing.default_detail}",
        f"failed: webhook {hook.pk}: Its encryption key is not configured.",
        f"failed: webhook {hook.pk} (URL): Its encryption key is not configured.",
        f"failed: webhook {hook.pk} (replaced secret): Its encryption key is not configured.",
        f"failed: idempotent response {answer.pk}: Its encryption key is not configured.",
    ]


def test_only_values_of_other_keys_are_reported(hook: WebhookEndpoint, settings: Any) -> None:
    settings.STATE_ENCRYPTION_KEYS = [new_key()]

    _, error, _ = run("verify_states")

    assert error == "3 values need a key that is not configured"


def test_damaged_value_does_not_stop_the_rotation(
    hook: WebhookEndpoint, answer: IdempotentRequest, settings: Any
) -> None:
    IdempotentRequest.objects.update(answer=b"\0" * 40)
    settings.STATE_ENCRYPTION_KEYS = [new_key(), *settings.STATE_ENCRYPTION_KEYS]

    done, error, problems = run("rotate_state_keys")

    assert done["webhook_secrets"] == {"reencrypted": 1, "failed": 0}
    assert done["idempotent_answers"] == {"reencrypted": 0, "failed": 1}
    assert error.startswith("1 value not re-encrypted")
    assert problems == [
        f"failed: idempotent response {answer.pk}: It cannot be decrypted with its key."
    ]


def test_expired_values_do_not_need_a_key(
    hook: WebhookEndpoint, answer: IdempotentRequest, settings: Any
) -> None:
    past = timezone.now() - dt.timedelta(seconds=1)
    WebhookEndpoint.objects.update(retired_secret_until=past, retired_encryption_key="1" * 16)
    IdempotentRequest.objects.update(answer_until=past)
    settings.STATE_ENCRYPTION_KEYS = [new_key()]

    checked, _, _ = run("verify_states")

    assert checked["need_older_keys"] == {
        **dict.fromkeys(KINDS, 0),
        "webhook_secrets": 2,
        "second_factors": 0,
    }
