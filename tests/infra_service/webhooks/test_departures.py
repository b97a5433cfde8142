"""Webhooks without a key, after the deactivation and the reactivation of their owner."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from django.utils import timezone

from apikeys.models import AuditEvent, User
from infra_service.webhooks.actions import send_test
from infra_service.webhooks.models import BY_OPERATOR, Delivery, WebhookEndpoint
from infra_service.webhooks.subscriptions import reaches
from tests.apikeys.test_commands import run
from tests.infra_service.test_admin_webhooks import ACTOR, make_endpoint
from tests.support.people import person, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return User.objects.create(username="ada")


@pytest.fixture
def endpoint(ada: User) -> WebhookEndpoint:
    """A working endpoint with a waiting delivery, among endpoints that do not work."""
    endpoint, now = make_endpoint(ada), timezone.now()
    send_test(endpoint=endpoint, actor=ACTOR)
    for columns in (
        {"created_at": now - dt.timedelta(days=2), "expires_at": now - dt.timedelta(days=1)},
        {"maker_token_id": "tok-revoked"},
        {"disabled_at": now, "disabled_reason": "OWNER"},
    ):
        other = make_endpoint(ada, name="other")
        WebhookEndpoint.objects.filter(pk=other.pk).update(**columns)
    make_endpoint(User.objects.create(username="bob"))
    return endpoint


def deactivate(*options: str) -> Any:
    return json.loads(run("deactivate_user", "ada", "--json", *options))


def works_after_reactivation(endpoint: WebhookEndpoint) -> bool:
    User.objects.filter(username="ada").update(is_active=True)
    return endpoint.pk in reaches()


def test_revocation_disables_webhooks_without_a_key(endpoint: WebhookEndpoint) -> None:
    assert deactivate("--revoke")["webhooks"] == 1

    assert not works_after_reactivation(endpoint)
    endpoint.refresh_from_db()
    assert endpoint.disabled_reason == BY_OPERATOR
    assert Delivery.objects.get().status == "FAILED"
    event = AuditEvent.objects.get(action="webhook.disable")
    assert (event.resource_id, event.actor_name) == (str(endpoint.pk), "command deactivate_user")
    assert WebhookEndpoint.objects.get(owner__username="bob").is_enabled
    assert deactivate("--revoke")["webhooks"] == 0


def test_deactivation_counts_them(endpoint: WebhookEndpoint) -> None:
    assert "refused: 0 API keys, 0 access tokens, 0 trust policies, 1 webhooks" in run(
        "deactivate_user", "ada"
    )

    assert works_after_reactivation(endpoint)


@pytest.mark.parametrize("revokes", [True, False])
def test_reactivation_asks_about_them(revokes: bool, ada: User, endpoint: WebhookEndpoint) -> None:
    deactivate()
    administrator, path = person("administrator"), f"/admin/apikeys/user/{ada.pk}/change/"
    page = text_of(administrator.get(path))
    assert "If you make this user active, 1 webhook will work again." in page

    ticked = {"revoke_credentials": "on"} if revokes else {}
    administrator.post(path, {"username": "ada", "is_active": "on", **ticked})

    ada.refresh_from_db()
    assert ada.is_active
    assert works_after_reactivation(endpoint) is not revokes
