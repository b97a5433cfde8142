"""``/api/v1/webhooks``: permissions for event types, and rejected requests."""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
import socket
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apikeys import actions
from apikeys.actors import Actor
from apikeys.errors import ExpiryPast
from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from infra_service.lib.encryption import keyring
from infra_service.webhooks import actions as webhook_actions
from infra_service.webhooks import models, secrets
from infra_service.webhooks.actions import (
    disable_endpoint,
    enable_endpoint,
    endpoints,
    reencrypt_secrets,
)
from infra_service.webhooks.errors import (
    DeliveryNotFound,
    WebhookDisabledByOperator,
    WebhookNotFound,
)
from infra_service.webhooks.event_types import TYPES
from infra_service.webhooks.models import Delivery, WebhookEndpoint, origin_of
from tests.conftest import ApiClient, ClientWith, error_reason
from tests.infra_service.webhooks.conftest import PATH, SCOPES, Hook, deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver, answers
from tests.infra_service.webhooks.test_trail import event
from tests.states.conftest import Backend, document

DOCS = Path(__file__).resolve().parents[3] / "docs"


def body(**fields: Any) -> Any:
    wanted = {"name": "n", "url": "https://example.com/x", "event_types": ["state.push"]}
    return {"webhook": {**wanted, **fields}}


def test_webhook_is_created_changed_and_deleted(client: ApiClient) -> None:
    created = client.send("POST", PATH, body(filter="field['cluster'] = 'a'"))
    assert created.status_code == 201
    assert created["Cache-Control"] == "no-store"
    webhook, secret = created.json()["webhook"], created.json()["secret"]
    path = f"{PATH}/{webhook['id']}"
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret)
    assert (webhook["enabled"], webhook["disabled_reason"]) == (True, "")
    assert (webhook["format"], webhook["binding"]) == ("standard", None)
    assert client.get(path).json() == {"webhook": webhook}
    assert client.items(PATH, "webhooks") == [webhook]

    changed = client.send(
        "PATCH", path, {"name": "m", "enabled": False, "event_types": ["state.lock"]}
    )
    assert changed.status_code == 200, changed.content
    assert changed.json()["webhook"]["disabled_reason"] == "OWNER"
    assert error_reason(client.send("POST", f"{path}:test")) == "WEBHOOK_DISABLED"

    assert client.send("DELETE", path).status_code == 204
    assert error_reason(client.get(path)) == "WEBHOOK_NOT_FOUND"
    events = AuditEvent.objects.filter(action__startswith="webhook.").order_by("id")
    assert [one.action for one in events] == ["webhook.create", "webhook.update", "webhook.delete"]
    assert set(events[1].details) == {"name", "event_types", "enabled"}
    assert secret not in str([one.details for one in events])


def test_only_an_operator_enables_a_webhook_disabled_by_an_operator(
    client: ApiClient, receiver: Receiver
) -> None:
    hook = hook_of(client, receiver, "state.push")
    path, operator = f"{PATH}/{hook.endpoint.pk}", Actor(name="operator")
    client.send("PATCH", path, {"enabled": False})
    disable_endpoint(endpoint_id=hook.endpoint.pk, reason="OPERATOR", actor=operator)
    assert AuditEvent.objects.latest("id").details == {"reason": "OPERATOR"}

    refused = client.send("PATCH", path, {"enabled": True, "name": "m"})
    assert (refused.status_code, error_reason(refused)) == (403, "WEBHOOK_DISABLED_BY_OPERATOR")
    assert "Ask an operator" in refused.json()["error"]["message"]
    assert error_reason(client.send("POST", f"{path}:test")) == "WEBHOOK_DISABLED_BY_OPERATOR"
    # To disable it once more does not make the block the owner's own.
    changed = client.send("PATCH", path, {"enabled": False, "name": "m"}).json()["webhook"]
    assert (changed["name"], changed["disabled_reason"]) == ("m", "OPERATOR")

    enable_endpoint(endpoint_id=hook.endpoint.pk, actor=operator)
    assert client.get(path).json()["webhook"]["enabled"]
    recorded = AuditEvent.objects.latest("id")
    assert (recorded.action, recorded.actor_name) == ("webhook.update", "operator")
    assert client.send("PATCH", path, {"enabled": False}).status_code == 200
    assert client.send("PATCH", path, {"enabled": True}).status_code == 200


def test_an_expired_webhook_can_be_enabled_only_with_a_new_expiry(
    client: ApiClient, receiver: Receiver
) -> None:
    hook = hook_of(client, receiver, "state.push")
    path, operator = f"{PATH}/{hook.endpoint.pk}", Actor(name="operator")
    client.send("PATCH", path, {"enabled": False})
    WebhookEndpoint.objects.filter(pk=hook.endpoint.pk).update(
        created_at=timezone.now() - dt.timedelta(days=2),
        expires_at=timezone.now() - dt.timedelta(days=1),
    )

    with pytest.raises(ExpiryPast):
        enable_endpoint(endpoint_id=hook.endpoint.pk, actor=operator)
    refused = client.send("PATCH", path, {"enabled": True})
    assert (refused.status_code, error_reason(refused)) == (400, "INVALID_FIELDS")
    assert client.send("PATCH", path, {"name": "renamed"}).status_code == 200

    changes = {"enabled": True, "expires_at": (timezone.now() + dt.timedelta(hours=1)).isoformat()}
    assert client.send("PATCH", path, changes).json()["webhook"]["enabled"]


def test_the_secret_is_encrypted(client: ApiClient, receiver: Receiver) -> None:
    hook = hook_of(client, receiver, "state.push")

    raw = secrets.decrypt(hook.endpoint.secret, hook.endpoint.encryption_key, hook.endpoint.pk)

    assert secrets.shown(raw) == hook.secret
    assert raw not in bytes(hook.endpoint.secret)
    with pytest.raises(secrets.SecretUnreadableError):
        secrets.decrypt(hook.endpoint.secret, hook.endpoint.encryption_key, uuid.uuid4())


def in_the_database(hook: Hook) -> str:
    """Return all columns of the webhook's row."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM webhooks_webhookendpoint")
        return str([column for row in cursor.fetchall() for column in row])


def test_the_url_is_encrypted(client: ApiClient, receiver: Receiver) -> None:
    hook = hook_of(client, receiver, "cluster.create")
    for path in ("/services/T0/B0/secret", "/services/T0/B0/changed?key=secret"):
        url = origin_of(receiver.url) + path
        answer = client.send("PATCH", hook.path, {"url": url})

        assert answer.json()["webhook"]["url"] == url
        assert client.get(hook.path).json()["webhook"]["url"] == url
        assert path[:9] not in in_the_database(hook)
        event("a").save()
        deliver()
        assert receiver.received[-1].path == path


def test_a_copied_url_is_unreadable(client: ApiClient, receiver: Receiver) -> None:
    hook, other = (hook_of(client, receiver, "cluster.create") for _ in range(2))
    copied = {"encrypted_url": other.endpoint.encrypted_url}
    WebhookEndpoint.objects.filter(pk=hook.id).update(**copied)

    with pytest.raises(secrets.SecretUnreadableError):
        hook.endpoint.destination()


@pytest.mark.parametrize("is_upgraded_again", [False, True])
def test_a_url_of_an_earlier_release_works_and_is_encrypted(
    is_upgraded_again: bool, client: ApiClient, receiver: Receiver
) -> None:
    hook = hook_of(client, receiver, "cluster.create")
    url = origin_of(receiver.url) + "/services/secret"
    WebhookEndpoint.objects.update(stored_url=url)
    if not is_upgraded_again:
        WebhookEndpoint.objects.update(encrypted_url="")

    for expected in (1, 0):
        assert client.get(hook.path).json()["webhook"]["url"] == url
        assert "secret" not in hook.endpoint.origin
        event("a").save()
        deliver()
        assert receiver.received[-1].path == "/services/secret"
        assert reencrypt_secrets() == expected
    assert "services" not in in_the_database(hook)


def test_an_unreadable_url_can_be_replaced(
    client: ApiClient, receiver: Receiver, settings: Any
) -> None:
    hook = hook_of(client, receiver, "cluster.create")
    hidden = secrets.encrypt_url(receiver.url, uuid.uuid4())
    WebhookEndpoint.objects.update(encrypted_url=hidden)

    assert client.get(hook.path).json()["webhook"]["url"] == hook.endpoint.origin
    event("a").save()
    deliver()
    (delivery,) = hook.deliveries()
    assert delivery["error"] == "the URL cannot be read: inform the operator, or set it again"
    assert client.send("PATCH", hook.path, {"url": receiver.url}).status_code == 200
    Delivery.objects.update(next_attempt_at=timezone.now())
    deliver()
    assert [one["status"] for one in hook.deliveries()] == ["DELIVERED"]


def test_a_url_without_a_path_of_an_earlier_release_replaces_the_encrypted_url(
    client: ApiClient, receiver: Receiver
) -> None:
    hook = hook_of(client, receiver, "cluster.create")
    WebhookEndpoint.objects.update(stored_url="https://example.com")

    assert hook.endpoint.destination() == "https://example.com"
    assert client.get(hook.path).json()["webhook"]["url"] == "https://example.com"


def test_the_shown_part_of_an_unreadable_url_does_not_replace_the_url(
    client: ApiClient, receiver: Receiver, settings: Any
) -> None:
    hook = hook_of(client, receiver, "cluster.create")
    keys, settings.STATE_ENCRYPTION_KEYS = settings.STATE_ENCRYPTION_KEYS, ["A" * 43 + "="]
    shown = client.get(hook.path).json()["webhook"]["url"]
    changed = {"name": "renamed", "url": shown}
    assert client.send("PATCH", hook.path, changed).status_code == 200

    settings.STATE_ENCRYPTION_KEYS = keys
    webhook = client.get(hook.path).json()["webhook"]
    assert (webhook["name"], webhook["url"]) == ("renamed", receiver.url)


def test_secrets_survive_a_new_encryption_key(
    client: ApiClient, receiver: Receiver, settings: Any
) -> None:
    hook = hook_of(client, receiver, "cluster.create")
    old = settings.STATE_ENCRYPTION_KEYS[0]
    settings.STATE_ENCRYPTION_KEYS = ["A" * 43 + "=", old]

    assert reencrypt_secrets() == 1
    settings.STATE_ENCRYPTION_KEYS = ["A" * 43 + "="]
    assert reencrypt_secrets() == 0
    event("a").save()
    deliver()
    settings.STATE_ENCRYPTION_KEYS = [old]
    event("b").save()
    deliver()

    assert len(receiver.received) == 1
    error = hook.deliveries()[1]["error"]
    assert error == "the secret cannot be read: inform the operator, or rotate it"


def test_a_process_without_the_key_loses_no_message(
    client: ApiClient, receiver: Receiver, settings: Any
) -> None:
    """Such as a process that was not restarted before the old key was replaced."""
    hook = hook_of(client, receiver, "cluster.create")
    keys, settings.STATE_ENCRYPTION_KEYS = settings.STATE_ENCRYPTION_KEYS, ["A" * 43 + "="]
    event("a").save()
    deliver()
    assert [(one["status"], one["attempts"]) for one in hook.deliveries()] == [("WAITING", 1)]

    settings.STATE_ENCRYPTION_KEYS = keys
    Delivery.objects.update(next_attempt_at=timezone.now())
    deliver()
    assert [one["status"] for one in hook.deliveries()] == ["DELIVERED"]
    assert len(receiver.received) == 1


BAD: dict[str, tuple[Any, str]] = {
    "no name": (body(name=""), "webhook.name"),
    "no events": (body(event_types=[]), "webhook.event_types"),
    "unknown event": (body(event_types=["state.pushed"]), "webhook.event_types.0"),
    "not to be asked for": (body(event_types=["webhook.test"]), "webhook.event_types.0"),
    "filter": (body(filter="field['nothing'] = 'x'"), "webhook.filter"),
    "long filter": (body(filter="x" * 1025), "webhook.filter"),
    "format": (body(format="xml"), "webhook.format"),
    "past": (body(expires_at="2020-01-01T00:00:00Z"), "webhook.expires_at"),
    "enabled": (body(enabled="yes"), "webhook.enabled"),
    "unknown": (body(secret="mine"), "webhook.secret"),
    **{
        url: (body(url=url), "url")
        for url in ("ftp://x/", "https://", "https://a:b@x/", "https://x/ y", "https://x:0/",
                    "javascript:alert(1)", "/x", "https://[::1", "https://é/")
    },
}  # fmt: skip


@pytest.mark.both
@pytest.mark.parametrize("case", BAD)
def test_invalid_fields_are_rejected(case: str, client: ApiClient) -> None:
    sent, field = BAD[case]

    answer = client.send("POST", PATH, sent)

    assert answer.status_code == 400, answer.content
    violations = answer.json()["error"]["details"][1]["field_violations"]
    assert field in [one["field"] for one in violations]
    assert not WebhookEndpoint.objects.exists()


def test_scopes_are_required(client_with: ClientWith, anonymous: Client) -> None:
    assert error_reason(anonymous.get(PATH)) == "CREDENTIALS_MISSING"
    assert error_reason(client_with("state:read").get(PATH)) == "SCOPE_INSUFFICIENT"
    less = client_with("webhook:write", "cluster:read")
    assert error_reason(less.send("POST", PATH, body())) == "GRANT_EXCEEDED"
    assert less.send("POST", PATH, body(event_types=["cluster.create"])).status_code == 201


def test_token_without_read_scope_cannot_redirect_events(
    client: ApiClient, client_with: ClientWith
) -> None:
    """Another token of the same owner, without state:read, does not change where pushes go."""
    path = f"{PATH}/{client.send('POST', PATH, body()).json()['webhook']['id']}"
    less = client_with("webhook:write")

    for change in ({"url": "https://evil.example/"}, {"filter": "field['cluster'] = 'a'"}):
        assert error_reason(less.send("PATCH", path, change)) == "GRANT_EXCEEDED"
    assert error_reason(less.send("POST", f"{path}:rotate-secret")) == "GRANT_EXCEEDED"
    assert client.get(path).json()["webhook"]["url"] == "https://example.com/x"


def test_other_owners_and_bindings_cannot_access_a_webhook(
    client: ApiClient, client_with: ClientWith
) -> None:
    path = f"{PATH}/{client.send('POST', PATH, body()).json()['webhook']['id']}"
    bound = client_with(*SCOPES, bound_cluster_id=uuid.uuid4())
    outsider = client_with(*SCOPES)
    AccessToken.objects.filter(pk=outsider.token.pk).update(
        created_by=User.objects.create(username="stranger")
    )

    for other in (bound, outsider):
        assert other.items(PATH, "webhooks") == []
        for method, suffix in (
            ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", ":test"),
            ("POST", ":rotate-secret"), ("GET", "/deliveries"), ("POST", "/deliveries/1:redeliver"),
        ):  # fmt: skip
            sent = {"name": "x"} if method == "PATCH" else None
            assert error_reason(other.send(method, path + suffix, sent)) == "WEBHOOK_NOT_FOUND"


def test_deliveries_follow_the_current_permissions_of_the_creator(
    operator: User, receiver: Receiver, client: ApiClient
) -> None:
    """A key that is narrowed, then revoked; nothing is done to the webhook itself."""
    key, secret = actions.create_api_key(
        user_id=operator.pk, name="k", scopes=["webhook:write", "state:read", "cluster:read"],
        expires_at=None, actor=Actor(name="test"),
    )  # fmt: skip
    maker = ApiClient(secret, AccessToken())
    hook = hook_of(maker, receiver, "cluster.create", "state.push")
    backend = Backend(client)
    backend.push(document(1))
    event("first").save()
    deliver()
    ApiKey.objects.filter(pk=key.pk).change(scopes=["webhook:write", "state:read"])
    backend.push(document(2))
    event("second").save()
    deliver()
    narrowed = sorted(receiver.types())
    receiver.answer = answers(500)
    backend.push(document(3))
    deliver()
    ApiKey.objects.revoke(key.pk)
    backend.push(document(4))
    deliver()

    assert narrowed == ["cluster.create", "state.push", "state.push"]
    assert len(receiver.received) == 4
    last = Delivery.objects.filter(endpoint_id=hook.id).latest("id")
    assert (last.status, last.error) == (
        "FAILED",
        "the webhook is disabled, has expired, or its key or owner is not valid",
    )


def test_networks_of_the_caller_do_not_limit_a_webhook(operator: User, receiver: Receiver) -> None:
    key, secret = actions.create_api_key(
        user_id=operator.pk, name="k", scopes=["webhook:write", "cluster:read"], expires_at=None,
        actor=Actor(name="test"),
    )  # fmt: skip
    ApiKey.objects.filter(pk=key.pk).update(allowed_networks=["127.0.0.0/8"])
    maker = ApiClient(secret, AccessToken())
    path = f"{PATH}/{hook_of(maker, receiver, 'cluster.create').id}"

    assert maker.send("POST", f"{path}:rotate-secret").status_code == 200
    ApiKey.objects.filter(pk=key.pk).update(allowed_networks=["127.0.0.0/16"])
    assert maker.send("PATCH", path, {"name": "renamed"}).status_code == 200


def test_webhook_receives_only_key_events_of_its_owner(
    client: ApiClient, receiver: Receiver, operator: User
) -> None:
    hook_of(client, receiver, "api_key.create")
    for user in (User.objects.create(username="other"), operator):
        actions.create_api_key(
            user_id=user.pk, name=f"of {user}", scopes=["state:read"], expires_at=None,
            actor=Actor(name="test"),
        )  # fmt: skip

    deliver()

    assert [one.payload["data"]["name"] for one in receiver.received] == ["of operator"]


def test_it_ends_no_later_than_its_maker(client: ApiClient) -> None:
    soon = timezone.now() + dt.timedelta(hours=1)
    AccessToken.objects.filter(pk=client.token.pk).update(expires_at=soon)

    answer = client.send("POST", PATH, body())
    assert answer.json()["webhook"]["expires_at"] == soon.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    never = client.send("POST", PATH, body(expires_at=None))
    assert error_reason(never) == "GRANT_EXCEEDED"


def test_number_of_webhooks_is_limited(client: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert models.MAX_ENDPOINTS == 100
    monkeypatch.setattr(endpoints, "MAX_ENDPOINTS", 1)

    assert client.send("POST", PATH, body()).status_code == 201
    assert error_reason(client.send("POST", PATH, body())) == "TOO_MANY_WEBHOOKS"


def test_test_message_is_delivered(client: ApiClient, receiver: Receiver) -> None:
    hook = hook_of(client, receiver, "state.push", filter="field['cluster'] = 'nowhere'")

    answer = client.send("POST", f"{hook.path}:test")
    deliver()

    assert answer.json()["delivery"]["status"] == "WAITING"
    (one,) = receiver.received
    assert one.payload["type"] == "webhook.test"
    assert one.payload["data"] == {"id": hook.id, "name": "test"}
    assert one.message_id == answer.json()["delivery"]["message_id"]


def test_redelivery_sends_the_event_again(client: ApiClient, receiver: Receiver) -> None:
    hook = hook_of(client, receiver, "cluster.create")
    event("a").save()
    deliver()
    (delivery,) = hook.deliveries()
    path = f"{hook.path}/deliveries/{delivery['id']}:redeliver"

    assert client.send("POST", path).json()["delivery"]["status"] == "WAITING"
    deliver()

    assert len(receiver.received) == 2
    assert len({one.message_id for one in receiver.received}) == 1
    for number in ("0", "x", "9" * 30, "-1"):
        answer = client.send("POST", f"{hook.path}/deliveries/{number}:redeliver")
        assert error_reason(answer) == "DELIVERY_NOT_FOUND"
    listed = client.get(f"{hook.path}/deliveries", {"filter": "field['status'] = 'FAILED'"})
    assert listed.json() == {"deliveries": [], "next_page_token": ""}


UNDELIVERABLE = (
    *(f"{scheme}://{host}/x" for scheme in ("https", "http") for host in (
        "127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "[fd00::1]", "0.0.0.0", "127.1",
        "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "localhost", "LOCALHOST.",
        "a.localhost", "localhost:8443", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "[fec0::1]",
        "[64:ff9b:1::1]", "[5f00::1]", "[::8.8.8.8]", "192.0.0.8", "192.88.99.1", "224.0.0.1",
    )),
    "http://8.8.8.8/x", "http://hooks.example/x", "http://[2606:4700::1111]/x",
)  # fmt: skip


@pytest.mark.parametrize("url", UNDELIVERABLE)
def test_forbidden_url_is_rejected(
    url: str, client: ApiClient, receiver: Receiver, settings: Any
) -> None:
    hook = hook_of(client, receiver, "cluster.create")
    settings.WEBHOOK_NETWORKS = []
    wanted = {"name": "n", "url": url, "event_types": ["cluster.create"]}

    created = client.send("POST", PATH, {"webhook": wanted})
    changed = client.send("PATCH", hook.path, {"webhook": {"url": url}})

    for answer in (created, changed):
        assert (answer.status_code, error_reason(answer)) == (400, "INVALID_FIELDS")
        assert "This URL cannot receive messages" in answer.content.decode()
    # The URL that it has is not compared again: an owner can rename and disable it.
    changed = client.send("PATCH", hook.path, {"webhook": {"name": "m", "enabled": False}})
    assert changed.json()["webhook"]["name"] == "m"


@pytest.mark.parametrize(
    ("url", "network"),
    [
        ("https://10.1.2.3/x", "10.0.0.0/8"), ("http://10.1.2.3/x", "10.0.0.0/8"),
        ("http://localhost:8080/x", "127.0.0.0/8"), ("http://hooks.example/x", "10.0.0.0/8"),
        ("https://8.8.8.8/x", None), ("https://hooks.example/x", None),
        ("https://[2606:4700::1111]/x", None),
    ],
)  # fmt: skip
def test_a_url_that_may_be_delivered_is_accepted(
    url: str, network: str | None, client: ApiClient, settings: Any
) -> None:
    settings.WEBHOOK_NETWORKS = [ipaddress.ip_network(network)] if network else []
    wanted = {"name": "n", "url": url, "event_types": ["cluster.create"]}

    assert client.send("POST", PATH, {"webhook": wanted}).status_code == 201


def test_private_addresses_of_a_name(
    client: ApiClient, receiver: Receiver, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is resolved when something is sent, and each time again."""
    settings.WEBHOOK_NETWORKS = []
    hook = hook_of(client, receiver, "cluster.create", url="https://hooks.example/x")
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    event("a").save()

    deliver()

    assert "private address" in hook.deliveries()[0]["error"]


def test_plain_http_only_where_it_is_allowed(
    client: ApiClient, receiver: Receiver, settings: Any
) -> None:
    hook = hook_of(client, receiver, "cluster.create")
    settings.WEBHOOK_NETWORKS = []
    event("a").save()

    deliver()

    assert not receiver.received
    assert (
        hook.deliveries()[0]["error"]
        == "plain http is allowed only for addresses in WEBHOOK_NETWORKS"
    )


def test_webhook_adds_no_query_to_a_push(client: ApiClient, receiver: Receiver) -> None:
    """A webhook for the event adds no statement to a push."""
    backend = Backend(client)
    backend.push(document(1))
    with CaptureQueriesContext(connection) as without:
        backend.push(document(2))
    hook_of(client, receiver, "state.push")
    with CaptureQueriesContext(connection) as beside:
        backend.push(document(3))

    assert len(beside) == len(without)


def test_the_reference_has_all_events() -> None:
    text = (DOCS / "reference" / "webhooks.md").read_text()
    table = text[text.index("## Events") : text.index("## Messages")]
    first = re.findall(r"^\| (`.+?`) \| `([a-z]+:[a-z]+)` \|", table, re.MULTILINE)
    documented = {
        name: scope for names, scope in first for name in re.findall(r"`([a-z_.]+)`", names)
    }

    assert documented == {name: one.scope.value for name, one in TYPES.items()}


def test_documented_verification_accepts_messages(client: ApiClient, receiver: Receiver) -> None:
    text = (DOCS / "how-to" / "receive-webhooks.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    guide: dict[str, Any] = {}
    exec(code, guide)
    hook = hook_of(client, receiver, "cluster.create")
    event("a").save()
    deliver()

    (one,) = receiver.received
    is_genuine = guide["is_genuine"]
    assert is_genuine(hook.secret, one.headers, one.body)
    assert not is_genuine(hook.secret, one.headers, one.body + b" ")
    old = {**one.headers, "webhook-timestamp": "1"}
    assert not is_genuine(hook.secret, old, one.body)


def test_a_secret_of_before_is_read() -> None:
    """A 12-byte nonce and the AES-GCM ciphertext, with the endpoint ID as associated data."""
    endpoint_id, once = uuid.uuid4(), bytes(12)
    name, cipher = next(iter(keyring().items()))
    sealed = once + cipher.encrypt(once, b"secret", b"webhook" + endpoint_id.bytes)

    assert secrets.decrypt(sealed, name, endpoint_id) == b"secret"
    with pytest.raises(secrets.SecretUnreadableError):
        secrets.decrypt(sealed, name, uuid.uuid4())


def test_deleted_webhooks_and_deliveries_send_nothing(
    client: ApiClient, receiver: Receiver
) -> None:
    """A webhook or delivery may be deleted after the request has found it."""
    hook, actor = hook_of(client, receiver, "state.push"), Actor(name="test")
    endpoint = WebhookEndpoint.objects.get(pk=hook.id)
    delivery = webhook_actions.send_test(endpoint=endpoint, actor=actor)
    Delivery.objects.all().delete()
    with pytest.raises(DeliveryNotFound):
        webhook_actions.redeliver(delivery=delivery, actor=actor)
    client.delete(hook.path)

    with pytest.raises(WebhookNotFound):
        webhook_actions.redeliver(delivery=delivery, actor=actor)
    with pytest.raises(WebhookNotFound):
        webhook_actions.send_test(endpoint=endpoint, actor=actor)
    assert not AuditEvent.objects.filter(action="webhook.redeliver").exists()


def test_disabled_webhook_sends_no_test(client: ApiClient, receiver: Receiver) -> None:
    hook, actor = hook_of(client, receiver, "state.push"), Actor(name="test")
    endpoint = WebhookEndpoint.objects.get(pk=hook.id)
    disable_endpoint(endpoint_id=endpoint.pk, reason=models.BY_OPERATOR, actor=actor)

    with pytest.raises(WebhookDisabledByOperator):
        webhook_actions.send_test(endpoint=endpoint, actor=actor)
