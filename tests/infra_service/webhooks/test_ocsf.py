"""The audit log as OCSF API Activity, delivered to a receiver."""

from __future__ import annotations

import uuid
from typing import Any, Final

import pytest
from django.test import Client
from standardwebhooks.webhooks import Webhook

from apikeys import audit
from apikeys.actors import Actor
from apikeys.models import AuditEvent
from infra_service.webhooks.models import Delivery, WebhookEndpoint
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.infra_service.test_trace_context import TRACE, TRACEPARENT
from tests.infra_service.webhooks.conftest import PATH, deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver, answers
from tests.states.conftest import Backend, document

# Required and permitted attributes of https://schema.ocsf.io/1.5.0/classes/api_activity and of its
# objects, as far as the service sends them: True is required.
ATTRIBUTES: Final[dict[str, dict[str, bool]]] = {
    "event": {
        "activity_id": True, "activity_name": False, "actor": True, "api": True,
        "category_name": False, "category_uid": True, "class_name": False, "class_uid": True,
        "message": False, "metadata": True, "resources": False, "severity_id": True,
        "src_endpoint": True, "status_id": False, "time": True, "type_uid": True,
        "unmapped": False,
    },
    "metadata": {
        "version": True, "product": True, "uid": False, "event_code": False, "log_name": False,
        "correlation_uid": False,
    },
    "product": {"name": False, "vendor_name": False, "version": False},
    "api": {"operation": True, "request": False, "service": False},
    "request": {"uid": True},
    "service": {"name": False},
    "actor": {"user": False, "app_name": False},
    "user": {"name": False, "uid": False, "credential_uid": False},
    "src_endpoint": {"ip": False, "name": False},
    "resources": {"uid": False, "type": False},
}  # fmt: skip
ENUMS: Final = {
    "activity_id": {0, 1, 2, 3, 4, 99},
    "category_uid": {6},
    "class_uid": {6003},
    "severity_id": {0, 1, 2, 3, 4, 5, 6, 99},
    "status_id": {0, 1, 2, 99},
}
CAPTIONS: Final = {1: "Create", 2: "Read", 3: "Update", 4: "Delete"}


def check(message: dict[str, Any]) -> None:
    """Fail unless the message is API Activity."""
    _check_object("event", message)
    for name, values in ENUMS.items():
        assert message[name] in values
    activity = message["activity_id"]
    assert message["type_uid"] == 600300 + activity
    assert message["activity_name"] == CAPTIONS.get(activity, message["activity_name"])
    assert message["activity_name"]
    assert 1_700_000_000_000 < message["time"] < 10_000_000_000_000
    assert message["metadata"]["version"] == "1.5.0"


def _check_object(name: str, value: dict[str, Any]) -> None:
    known = ATTRIBUTES[name]
    assert value.keys() <= known.keys()
    assert {field for field, required in known.items() if required} <= value.keys()
    if name in ("actor", "src_endpoint", "product", "service"):  # at least one attribute
        assert value
    for field, inner in value.items():
        for one in inner if isinstance(inner, list) else [inner]:
            if field in ATTRIBUTES:
                _check_object(field, one)
            elif field != "unmapped":
                assert isinstance(one, (str, int))
                assert one != ""


@pytest.fixture
def auditor(client_with: ClientWith) -> ApiClient:
    return client_with("webhook:write", "audit:read", "state:read", "state:write")


def subscribe(client: ApiClient, receiver: Receiver, **fields: Any) -> Any:
    return hook_of(client, receiver, "audit.event", **{"format": "ocsf", **fields})


def test_every_action_is_api_activity(auditor: ApiClient, receiver: Receiver) -> None:
    hook = subscribe(auditor, receiver)
    backend = Backend(auditor)
    backend.client.post(
        backend.path, document(), "application/json", headers={"traceparent": TRACEPARENT}
    )
    auditor.get(f"/api/v1/states/{AuditEvent.objects.get(action='state.push').resource_id}")
    Client().post("/admin/login/", {"username": "operator", "password": "wrong"})
    audit.authorize_and_record(Actor.of_command("prune_states"), "state.prune", "x", versions=[1])
    audit.authorize_and_record(Actor(name=""), "assertion.refuse", "", reason="expired")
    auditor.send("POST", f"{PATH}/{hook.id}:test")

    deliver()

    by_action = {message.payload["api"]["operation"]: message for message in receiver.received}
    for message in receiver.received:
        check(message.payload)
        Webhook(hook.secret).verify(message.body, message.headers)
    assert {"webhook.create", "state.create", "state.push", "user.login_failed", "state.prune",
            "assertion.refuse", "webhook.test"} <= by_action.keys()  # fmt: skip
    push, event = by_action["state.push"].payload, AuditEvent.objects.get(action="state.push")
    assert push["actor"] == {
        "user": {
            "name": "operator", "uid": str(event.actor_id), "credential_uid": auditor.token.pk,
        }
    }  # fmt: skip
    assert push["src_endpoint"] == {"ip": "127.0.0.1"}
    assert push["api"]["request"] == {"uid": event.request_id}
    assert push["metadata"]["uid"] == str(event.pk)
    assert push["metadata"]["correlation_uid"] == TRACE
    assert push["resources"] == [{"uid": event.resource_id, "type": "state"}]
    assert push["unmapped"]["details"] == event.details
    assert push["time"] == int(event.occurred_at.timestamp() * 1000)
    outcomes = {
        name: (one.payload["activity_id"], one.payload["status_id"], one.payload["severity_id"])
        for name, one in by_action.items()
    }
    assert outcomes["state.push"] == (3, 1, 1)
    assert outcomes["state.prune"] == (4, 1, 1)
    assert outcomes["webhook.create"] == (1, 1, 1)
    assert outcomes["user.login_failed"] == (99, 2, 3)
    assert outcomes["webhook.test"] == (99, 1, 1)
    assert by_action["state.prune"].payload["actor"] == {"app_name": "command prune_states"}


def test_each_event_is_delivered_once_beside_its_own_type(
    client_with: ClientWith, receiver: Receiver
) -> None:
    client = client_with("webhook:write", "audit:read", "state:read", "state:write")
    hook_of(client, receiver, "state.push", "audit.event")
    Backend(client).push(document())

    deliver()
    deliver()

    sent = [message.payload for message in receiver.received]
    of_push = [one for one in sent if one["data"].get("action") in (None, "state.push")]
    assert sorted(one["type"] for one in of_push) == ["audit.event", "state.push"]
    (whole,) = [one["data"] for one in sent if one["data"].get("action") == "state.push"]
    event = AuditEvent.objects.get(action="state.push")
    assert whole == {
        "id": str(event.pk), "action": "state.push", "actor_id": str(event.actor_id),
        "actor_name": "operator", "token_id": client.token.pk, "resource_id": event.resource_id,
        "address": "127.0.0.1", "request_id": event.request_id, "client_request_id": "",
        "trace_id": None, "details": event.details, "is_truncated": False,
    }  # fmt: skip


def test_long_details_are_omitted(auditor: ApiClient, receiver: Receiver) -> None:
    subscribe(auditor, receiver)
    actor = Actor.of_command("prune_states")
    audit.authorize_and_record(actor, "state.prune", "x", versions=list(range(10_000)))

    deliver()

    (pruned,) = [m for m in receiver.received if m.payload["api"]["operation"] == "state.prune"]
    check(pruned.payload)
    assert pruned.payload["unmapped"] == {"is_truncated": True}
    assert len(pruned.body) < 20_000


def test_other_events_have_no_such_format(auditor: ApiClient, receiver: Receiver) -> None:
    fields = {"name": "siem", "url": receiver.url, "format": "ocsf"}
    for types in (["state.push"], ["audit.event", "state.push"]):
        body = {"webhook": {**fields, "event_types": types}}
        answer = auditor.send("POST", PATH, body)
        assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FIELDS")
        assert "audit.event" in answer.json()["error"]["message"]
    hook = hook_of(auditor, receiver, "state.push")
    for changes, status in (
        ({"format": "ocsf"}, 400),
        ({"format": "ocsf", "event_types": ["audit.event"]}, 200),
        ({"event_types": ["state.push"]}, 400),
    ):
        answer = auditor.send(
            "PATCH", f"{hook.path}?update_mask={','.join(changes)}", {"webhook": changes}
        )
        assert answer.status_code == status, answer.content
    assert WebhookEndpoint.objects.get().scopes == ["audit:read"]


def test_audit_events_need_the_scope_of_auditors(
    client_with: ClientWith, receiver: Receiver
) -> None:
    client = client_with("webhook:write", "state:admin")
    fields = {"name": "siem", "url": receiver.url, "event_types": ["audit.event"]}

    answer = client.send("POST", PATH, {"webhook": fields})

    assert (answer.status_code, error_reason(answer)) == (403, "GRANT_EXCEEDED")


def test_bound_webhook_gets_no_audit_event(client_with: ClientWith, receiver: Receiver) -> None:
    client = client_with("webhook:write", "audit:read", bound_cluster_id=uuid.uuid4())
    subscribe(client, receiver)

    deliver()

    assert receiver.received == []
    assert not Delivery.objects.exists()


def test_failed_delivery_is_retried(auditor: ApiClient, receiver: Receiver) -> None:
    hook = subscribe(auditor, receiver)
    receiver.answer = answers(500)
    deliver()

    statuses = {one["status"] for one in hook.deliveries()}
    assert statuses == {"WAITING"}
    assert all(one["response_status"] in (500, None) for one in hook.deliveries())
