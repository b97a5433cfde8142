"""From a change to the receiver: the message, and the handling of each kind of response."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import secrets
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.utils import timezone
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from apikeys.models import AuditEvent
from infra_service.webhooks import queue, sending
from infra_service.webhooks.actions import reencrypt_secrets
from infra_service.webhooks.models import Delivery
from infra_service.webhooks.queue import PAUSES
from states.models import Environment
from tests.conftest import ApiClient, ClientWith
from tests.infra_service.webhooks.conftest import deliver, hook_of, pass_time
from tests.infra_service.webhooks.receiver import Received, Receiver, answers
from tests.states.conftest import Backend, document


def is_signed(secret: str, one: Received) -> bool:
    """Verify with the library that receivers use."""
    try:
        Webhook(secret).verify(one.body, one.headers)
    except WebhookVerificationError:
        return False
    return True


def test_push_is_delivered(client: ApiClient, backend: Backend, receiver: Receiver) -> None:
    hook = hook_of(client, receiver, "state.push")
    backend.push(document())
    event = AuditEvent.objects.get(action="state.push")

    deliver()

    (one,) = receiver.received
    assert one.payload == {
        "type": "state.push",
        "timestamp": event.occurred_at.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "data": {
            "id": str(backend.record.pk),
            "actor": "operator",
            "version": 1,
            "serial": 1,
            "md5": hashlib.md5(document()).hexdigest(),
            "size_bytes": len(document()),
            "component_id": str(backend.component_id),
            "component": backend.record.component.slug,
            "environment_id": str(backend.environment_id),
            "environment": backend.record.environment.slug,
            "application_id": None,
            "application": None,
        },
    }
    assert one.path == "/hook"
    assert one.headers["content-type"] == "application/json"
    assert one.message_id == f"msg_{event.pk.hex}"
    assert abs(int(one.headers["webhook-timestamp"]) - time.time()) < 60
    assert is_signed(hook.secret, one)
    (delivery,) = hook.deliveries()
    assert (delivery["status"], delivery["attempts"]) == ("DELIVERED", 1)
    assert (delivery["response_status"], delivery["error"]) == (204, "")
    assert delivery["message_id"] == one.message_id


def test_lock_events_contain_no_lock_id_or_token_id(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    hook_of(client, receiver, "state.lock", "state.force_unlock")
    lock_id = uuid.uuid4()
    backend.lock(lock_id, Who="ada@host")
    backend.call(":force-unlock", {"reason": "left behind"})

    deliver()

    locked, broken = receiver.received
    assert set(locked.payload["data"]["lock"]) <= {"who", "operation", "created"}
    assert locked.payload["data"]["lock"]["who"] == "ada@host"
    assert broken.payload["data"]["reason"] == "left behind"
    for one in (locked, broken):
        assert str(lock_id) not in one.body.decode()
        assert client.token.pk not in one.body.decode()


def test_long_texts_are_cut(client: ApiClient, backend: Backend, receiver: Receiver) -> None:
    hook_of(client, receiver, "state.lock")
    backend.lock(uuid.uuid4(), Who="😀" * 5000, Operation="x" * 5000)

    deliver()

    assert len(receiver.received[0].body) < 20_000


def pause() -> dt.timedelta:
    """Return the time between the last and the next attempt of the only delivery."""
    delivery = Delivery.objects.get()
    assert delivery.next_attempt_at is not None
    assert delivery.last_attempt_at is not None
    return delivery.next_attempt_at - delivery.last_attempt_at


@pytest.mark.parametrize("status", [300, 304, 404, 500, 599])
def test_only_2xx_is_success(
    status: int, client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    hook = hook_of(client, receiver, "state.create")
    receiver.answer = answers(status)
    backend.push(document())

    deliver()

    (delivery,) = hook.deliveries()
    assert (delivery["status"], delivery["response_status"]) == ("WAITING", status)
    assert delivery["error"] == f"the receiver responded with status {status}"
    assert PAUSES[0] * 0.9 <= pause() <= PAUSES[0] * 1.1


def test_a_redirect_is_not_followed(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    hook = hook_of(client, receiver, "state.create")
    receiver.answer = answers(301, Location=receiver.url + "/elsewhere")
    backend.push(document())

    deliver()

    assert [one.path for one in receiver.received] == ["/hook"]
    assert hook.deliveries()[0]["response_status"] == 301


def test_ten_attempts_share_a_message_id(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    hook = hook_of(client, receiver, "state.create")
    receiver.answer = answers(503)
    backend.push(document())

    for turn in range(len(PAUSES) + 3):
        pass_time(seconds=1)
        deliver()
        if turn < len(PAUSES):
            assert PAUSES[turn] * 0.9 <= pause() <= PAUSES[turn] * 1.1

    assert len(receiver.received) == len(PAUSES) + 1 == 10
    assert len({one.message_id for one in receiver.received}) == 1
    assert {one.body for one in receiver.received} == {receiver.received[0].body}
    (delivery,) = hook.deliveries()
    assert (delivery["status"], delivery["attempts"]) == ("FAILED", 10)
    assert delivery["next_attempt_at"] is None


def test_gone_disables(client: ApiClient, backend: Backend, receiver: Receiver) -> None:
    hook = hook_of(client, receiver, "state.create", "state.push", "state.lock")
    receiver.answer = answers(410)
    backend.push(document())

    deliver()
    backend.lock(uuid.uuid4())
    deliver()

    assert len(receiver.received) == 1
    assert hook.endpoint.disabled_reason == "GONE"
    assert client.get(hook.path).json()["webhook"]["enabled"] is False
    assert {one["status"] for one in hook.deliveries()} == {"FAILED"}
    event = AuditEvent.objects.get(action="webhook.disable")
    assert (event.actor_name, event.details) == ("command deliver_events", {"reason": "GONE"})

    receiver.answer = answers(200)
    assert client.send("PATCH", hook.path, {"enabled": True}).status_code == 200
    backend.unlock(None)
    backend.lock(uuid.uuid4())
    deliver()
    assert receiver.types()[1:] == ["state.lock"] * (len(receiver.received) - 1) != []


HOURS = 3600
RETRY_AFTER = {
    "1": 5, "600": 600, "9999999999": 24 * HOURS, "-5": 5, "soon": 5, "1.5": 5, "": 5,
    "0" * 20 + "600": 600, "0000000000": 5, "9" * 5000: 24 * HOURS,
    "Sat, 01 Jan 2000 00:00:00 GMT": 5, "Fri, 31 Dec 2399 23:59:59 GMT": 24 * HOURS,
}  # fmt: skip


@pytest.mark.parametrize("value", RETRY_AFTER)
def test_how_long_retry_after_is_believed(value: str) -> None:
    now = timezone.now()
    answer = sending.Outcome(429, retry_at=sending._moment(value))

    waits = queue._next_attempt(0, answer, now)
    assert waits is not None
    assert 0.9 * RETRY_AFTER[value] <= (waits - now).total_seconds() <= 1.1 * RETRY_AFTER[value] + 1


@pytest.mark.parametrize(("status", "seconds"), [(429, 3600), (503, 3600), (500, 5)])
def test_retry_after_is_respected(
    status: int, seconds: int, client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    hook_of(client, receiver, "state.create")
    receiver.answer = answers(status, Retry_After="3600")
    backend.push(document())

    deliver()

    assert seconds * 0.9 <= pause().total_seconds() <= seconds * 1.1


def test_a_large_answer_is_not_read(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    sent = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(10 * 2**20))
        handler.end_headers()
        try:
            for _ in range(160):
                handler.wfile.write(b"x" * 2**16)
                sent.append(2**16)
        except OSError:
            sent.append(-1)

    receiver.answer = answer
    hook = hook_of(client, receiver, "state.create")
    backend.push(document())

    deliver()

    assert hook.deliveries()[0]["status"] == "DELIVERED"
    assert sent.count(2**16) < 160


def test_endless_headers_are_cut_off(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X-Y: z\r\n" * 50_000)

    receiver.answer = answer
    hook = hook_of(client, receiver, "state.create")
    backend.push(document())

    deliver()

    assert hook.deliveries()[0]["error"]
    assert hook.deliveries()[0]["response_status"] is None


def test_a_slow_answer_ends_in_time(
    client: ApiClient, backend: Backend, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte arrives in time, the whole response does not. Other deliveries continue."""
    over = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 ")
        while not over.wait(0.05):
            handler.wfile.write(b"O")

    assert sending.SECONDS == 15
    monkeypatch.setattr(sending, "SECONDS", 0.5)
    receiver.answer = drip
    hook = hook_of(client, receiver, "state.create")
    backend.push(document())

    deliver()
    over.set()

    (delivery,) = hook.deliveries()
    assert delivery["error"] == "the response took too long"


def test_deliveries_are_in_order_for_each_resource(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    """Later messages for a resource wait for earlier messages; other resources do not."""
    other = Backend(client)
    hook_of(client, receiver, "state.create", "state.push")
    failing = str(uuid.uuid4())

    def answer(handler: BaseHTTPRequestHandler) -> None:
        is_failing = receiver.received[-1].payload["data"]["id"] == failing
        answers(500 if is_failing else 200)(handler)

    backend.push(document(1))
    failing = str(backend.record.pk)
    receiver.answer = answer
    other.push(document(1))
    backend.push(document(2))

    deliver()
    tried = [one for one in receiver.received if one.payload["data"]["id"] == failing]
    others = [one.type for one in receiver.received if one not in tried]
    assert [one.type for one in tried] == ["state.create"]
    assert others == ["state.create", "state.push"]

    receiver.answer = answers(200)
    pass_time(seconds=1)
    deliver()
    delivered = [one for one in receiver.received if one.payload["data"]["id"] == failing]
    assert [(one.type, one.payload["data"].get("serial")) for one in delivered[1:]] == [
        ("state.create", None), ("state.push", 1), ("state.push", 2),
    ]  # fmt: skip


def test_two_secrets_sign_for_a_day(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    hook = hook_of(client, receiver, "state.push")
    answer = client.send("POST", f"{hook.path}:rotate-secret")
    assert answer["Cache-Control"] == "no-store"
    new = answer.json()["secret"]

    backend.push(document(1))
    deliver()
    type(hook.endpoint).objects.update(retired_secret_until=timezone.now())
    backend.push(document(2))
    deliver()

    first, second = receiver.received
    assert is_signed(new, first)
    assert is_signed(hook.secret, first)
    assert is_signed(new, second)
    assert not is_signed(hook.secret, second)


def test_a_replaced_secret_may_become_unreadable(
    client: ApiClient, backend: Backend, receiver: Receiver, settings: Any
) -> None:
    """The encryption key is replaced, and nothing encrypted the secrets in between."""
    hook = hook_of(client, receiver, "state.push")
    client.send("POST", f"{hook.path}:rotate-secret")
    backend.push(document(1))
    endpoint = hook.endpoint
    type(endpoint).objects.update(retired_encryption_key="gone")
    deliver()

    (one,) = receiver.received
    assert len(one.headers["webhook-signature"].split(" ")) == 1
    assert not is_signed(hook.secret, one)
    assert hook.deliveries()[0]["status"] == "DELIVERED"


def test_both_secrets_are_encrypted_with_the_new_key(
    client: ApiClient, backend: Backend, receiver: Receiver, settings: Any
) -> None:
    """As in a key rotation: first both keys, then the new key alone."""
    hook = hook_of(client, receiver, "state.push")
    new = client.send("POST", f"{hook.path}:rotate-secret").json()["secret"]
    old_keys = settings.STATE_ENCRYPTION_KEYS
    new_key = base64.b64encode(secrets.token_bytes(32)).decode()
    settings.STATE_ENCRYPTION_KEYS = [new_key, *old_keys]
    assert (reencrypt_secrets(), reencrypt_secrets()) == (1, 0)
    settings.STATE_ENCRYPTION_KEYS = [new_key]
    client.send("POST", f"{hook.path}:test")
    deliver()

    (one,) = receiver.received
    assert is_signed(new, one)
    assert is_signed(hook.secret, one)


def test_a_retired_secret_ends_at_its_moment(
    client: ApiClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = hook_of(client, receiver, "state.push")
    client.send("POST", f"{hook.path}:rotate-secret")
    endpoint = hook.endpoint
    until = endpoint.retired_secret_until
    assert until is not None
    assert len(endpoint.signing_secrets()) == 2

    monkeypatch.setattr(timezone, "now", lambda: until)

    assert len(endpoint.signing_secrets()) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"body": b"{}"},
        {"webhook-id": "msg_0"},
        {"webhook-timestamp": str(int(time.time()) - 301)},
        {"webhook-timestamp": str(int(time.time()) + 3600)},
        {"webhook-signature": "v1,AAAA"},
    ],
)
def test_changed_message_has_no_valid_signature(
    changed: dict[str, Any], client: ApiClient, receiver: Receiver
) -> None:
    hook = hook_of(client, receiver, "state.push")
    client.send("POST", f"{hook.path}:test")
    deliver()

    (one,) = receiver.received
    assert is_signed(hook.secret, one)
    body = changed.get("body", one.body)
    headers = {name: changed.get(name, value) for name, value in one.headers.items()}
    assert not is_signed(hook.secret, Received(one.path, headers, body))


def test_earlier_events_are_not_delivered(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    backend.push(document(1))
    hook_of(client, receiver, "state.push")
    backend.push(document(2))

    deliver()

    assert [one.payload["data"]["serial"] for one in receiver.received] == [2]


def test_filter_and_binding_select_events(client_with: ClientWith, receiver: Receiver) -> None:
    client = client_with("webhook:write", "state:read", "state:write", "cluster:write",
                         "cluster:read")  # fmt: skip
    here, there = Backend(client), Backend(client)
    here.push(document())
    there.push(document())
    Environment.objects.filter(pk=here.environment_id).update(slug="production")
    hook_of(client, receiver, "state.push", "cluster.create",
            filter="field['environment'] = 'production'")  # fmt: skip
    bound = client_with(
        "webhook:write", "state:read", "cluster:read",
        bound_component_ids=[str(there.component_id)],
    )  # fmt: skip
    hook_of(bound, receiver, "state.push", "cluster.create", url=receiver.url + "/bound")
    here.push(document(2))
    there.push(document(2))
    client.send("POST", "/api/v1/clusters", {"name": "c"})

    deliver()

    delivered = {(one.path, one.payload["data"]["component_id"]) for one in receiver.received}
    assert delivered == {
        ("/hook", str(here.component_id)),
        ("/hook/bound", str(there.component_id)),
    }


def test_a_cluster_by_its_name(client: ApiClient, receiver: Receiver) -> None:
    hook_of(client, receiver, "cluster.create", filter="field['cluster'] = 'b'")
    for name in "abc":
        client.send("POST", "/api/v1/clusters", {"name": name})

    deliver()

    assert [one.payload["data"]["name"] for one in receiver.received] == ["b"]
