"""Webhooks in the admin: permissions, and pages without secrets."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apikeys.actors import Actor
from apikeys.models import AuditEvent, User
from infra_service.webhooks import actions
from infra_service.webhooks.models import Delivery, WebhookEndpoint, WebhookEvent
from tests.support.people import confirm, person, reads_of, statements, text_of
from workloads.models import Cluster

ACTOR = Actor(name="test")
HOOKS, DELIVERIES = "/admin/webhooks/webhookendpoint/", "/admin/webhooks/delivery/"
TRAIL = "/admin/apikeys/auditevent/"
ORIGIN, REST = "https://hooks.example.com:8443", "/services/T0/B0/a-secret?key=another"
MEMBERS = ("", "viewer", "operator", "administrator")
DAY, HOUR = dt.timedelta(days=1), dt.timedelta(hours=1)


def make_endpoint(owner: User, name: str = "chat", url: str = ORIGIN + REST) -> WebhookEndpoint:
    fields = {"name": name, "url": url, "event_types": ["state.push"]}
    return actions.create_endpoint(
        owner_id=owner.pk, fields=fields, expires_at=None, actor=ACTOR
    )[0]  # fmt: skip


def make_delivery(endpoint: WebhookEndpoint, **fields: Any) -> Delivery:
    """Return a delivery, by default before its first attempt."""
    if fields.get("status", "WAITING") != "WAITING":
        fields["next_attempt_at"] = None
    event = WebhookEvent.objects.create(
        id=uuid.uuid4(), type="state.push", occurred_at=timezone.now(), resource_id="a-state"
    )
    return Delivery.objects.create(
        endpoint=endpoint, event=event, resource_id="a-state", **fields
    )  # fmt: skip


@pytest.fixture
def endpoint(operator: User) -> WebhookEndpoint:
    return make_endpoint(operator)


@pytest.fixture
def delivery(endpoint: WebhookEndpoint) -> Delivery:
    return make_delivery(
        endpoint, status="FAILED", attempts=10, response_status=500,
        error="the receiver responded with status 500",
    )  # fmt: skip


def shown(answer: Any) -> list[Any]:
    assert answer.status_code == 200
    return [row.pk for row in answer.context["cl"].result_list]


@pytest.mark.parametrize(
    ("path", "statuses"),
    [
        (HOOKS, (403, 200, 200, 200)),
        (f"{HOOKS}add/", (403, 403, 403, 200)),
        (f"{HOOKS}{{hook}}/edit/", (403, 403, 403, 200)),
        (f"{HOOKS}{{hook}}/rotate-secret/", (403, 403, 403, 200)),
        (f"{HOOKS}{{hook}}/send-test/", (403, 403, 200, 200)),
        (f"{HOOKS}{{hook}}/change/", (403, 200, 200, 200)),
        (f"{HOOKS}{{hook}}/delete/", (403, 403, 403, 403)),
        (f"{HOOKS}{{hook}}/disable/", (403, 403, 200, 200)),
        (f"{HOOKS}{{hook}}/enable/", (403, 403, 302, 302)),  # it is enabled
        (DELIVERIES, (403, 200, 200, 200)),
        (f"{DELIVERIES}add/", (403, 403, 403, 403)),
        (f"{DELIVERIES}{{delivery}}/change/", (403, 200, 200, 200)),
        (f"{DELIVERIES}{{delivery}}/delete/", (403, 403, 403, 403)),
        (f"{DELIVERIES}{{delivery}}/redeliver/", (403, 403, 200, 200)),
        ("/admin/webhooks/webhookevent/", (404, 404, 404, 404)),
        ("/admin/webhooks/trailposition/", (404, 404, 404, 404)),
    ],
)
def test_groups_can_read_their_pages(
    path: str, statuses: tuple[int, ...], delivery: Delivery
) -> None:
    where = path.format(hook=delivery.endpoint_id, delivery=delivery.pk)

    got = [person(*filter(None, [group])).get(where).status_code for group in MEMBERS]

    assert tuple(got) == statuses


@pytest.mark.parametrize(
    ("path", "statuses"),
    [
        (f"{HOOKS}{{hook}}/disable/", (403, 403, 302, 302)),
        (f"{DELIVERIES}{{delivery}}/redeliver/", (403, 403, 302, 302)),
        (f"{HOOKS}{{hook}}/change/", (403, 403, 403, 403)),
        (f"{DELIVERIES}{{delivery}}/change/", (403, 403, 403, 403)),
    ],
)
def test_groups_can_change_their_objects(
    path: str, statuses: tuple[int, ...], delivery: Delivery
) -> None:
    where = path.format(hook=delivery.endpoint_id, delivery=delivery.pk)
    got = []
    for group in MEMBERS:
        client = person(*filter(None, [group]))
        WebhookEndpoint.objects.update(disabled_at=None, disabled_reason="")
        events = AuditEvent.objects.count()
        got.append(client.post(where, {"name": "other"}).status_code)
        assert (AuditEvent.objects.count() > events) == (got[-1] == 302)
    assert tuple(got) == statuses


def test_form_of_another_site_is_rejected(endpoint: WebhookEndpoint) -> None:
    client = person("operator", enforce_csrf_checks=True)

    assert client.post(f"{HOOKS}{endpoint.pk}/disable/").status_code == 403

    endpoint.refresh_from_db()
    assert endpoint.is_enabled


def test_pages_show_an_endpoint_and_its_delivery(delivery: Delivery) -> None:
    client = person("viewer")

    row, page = (
        text_of(client.get(HOOKS)),
        text_of(client.get(f"{HOOKS}{delivery.endpoint_id}/change/")),
    )

    for text in (row, page):
        for part in ("chat", "operator", ORIGIN, "state.push", "Enabled", "Failed just now"):
            assert part in text
    assert "Disable" not in page
    page_of_delivery = text_of(client.get(f"{DELIVERIES}{delivery.pk}/change/"))
    for part in ("chat", "state.push", "Failed", "the receiver responded with status 500",
                 f"msg_{delivery.event_id.hex}"):  # fmt: skip
        assert part in page_of_delivery


def test_delivery_about_workloads_names_their_cluster(endpoint: WebhookEndpoint) -> None:
    cluster = Cluster.objects.create(name="edge-1")
    event = WebhookEvent.objects.create(
        id=uuid.uuid4(), type="workload.health_changed", occurred_at=timezone.now(),
        resource_id=cluster.pk,
    )  # fmt: skip
    delivery = Delivery.objects.create(endpoint=endpoint, event=event, resource_id=cluster.pk)

    page = person("viewer").get(f"{DELIVERIES}{delivery.pk}/change/").content.decode()

    assert f'<a href="/admin/workloads/cluster/{cluster.pk}/change/">edge-1</a>' in page


def test_no_page_has_a_secret(delivery: Delivery) -> None:
    """The current and the former URL are hidden too, and the secret columns are not read."""
    client = person("operator")
    endpoint = delivery.endpoint
    actions.change_endpoint(
        endpoints=WebhookEndpoint.objects.all(), endpoint_id=endpoint.pk, actor=ACTOR,
        changes={"url": f"{ORIGIN}/services/T0/B0/a-secret-of-now"},
    )  # fmt: skip
    events = AuditEvent.objects.filter(resource_id=endpoint.pk).order_by("id")
    assert [one.details["url"] for one in events] == [ORIGIN, {"from": ORIGIN, "to": ORIGIN}]
    pages = [
        HOOKS, f"{HOOKS}{endpoint.pk}/change/", f"{HOOKS}{endpoint.pk}/disable/", DELIVERIES,
        f"{DELIVERIES}{delivery.pk}/change/", f"{DELIVERIES}{delivery.pk}/redeliver/", "/admin/",
        *(f"{TRAIL}{event.pk}/change/" for event in events),
    ]  # fmt: skip

    for page in pages:
        with CaptureQueriesContext(connection) as captured:
            answer = client.get(page)
        assert answer.status_code == 200
        assert "a-secret" not in answer.content.decode(), page
        assert not [query for query in captured if '"secret"' in query["sql"]], page


def test_the_trail_leads_to_the_endpoint(endpoint: WebhookEndpoint) -> None:
    assert f'href="{HOOKS}{endpoint.pk}/change/"' in person("viewer").get(TRAIL).content.decode()


def test_webhook_is_disabled_and_enabled_again(endpoint: WebhookEndpoint) -> None:
    waiting, client = make_delivery(endpoint), person("operator")

    done = client.post(f"{HOOKS}{endpoint.pk}/disable/", follow=True)

    text = text_of(done)
    assert "The webhook chat is disabled." in text
    assert "Disabled by an operator, just now" in text.replace(" ,", ",")
    waiting.refresh_from_db()
    assert (waiting.status, waiting.error) == ("FAILED", "the webhook is disabled")
    assert (
        f"{DELIVERIES}{waiting.pk}/redeliver/"
        not in client.get(f"{DELIVERIES}{waiting.pk}/change/").content.decode()
    )
    refused = client.post(f"{DELIVERIES}{waiting.pk}/redeliver/", follow=True)
    assert "Redeliver is no longer possible." in text_of(refused)

    done = confirm(client, f"{HOOKS}{endpoint.pk}/enable/", {}, follow=True)

    assert "The webhook chat is enabled." in text_of(done)
    endpoint.refresh_from_db()
    assert endpoint.is_enabled
    events = AuditEvent.objects.filter(resource_id=endpoint.pk).order_by("-id")[:2]
    assert [(one.action, one.actor_name, one.details) for one in events] == [
        ("webhook.update", "operator-person", {"enabled": {"from": False, "to": True}}),
        ("webhook.disable", "operator-person", {"reason": "OPERATOR"}),
    ]


def test_an_outdated_page_does_not_enable_a_webhook(endpoint: WebhookEndpoint) -> None:
    actions.disable_endpoint(endpoint_id=endpoint.pk, reason="GONE", actor=ACTOR)
    client, address = person("operator"), f"{HOOKS}{endpoint.pk}/enable/"
    given = {"displayed": client.get(address).context["displayed"]}
    actions.disable_endpoint(endpoint_id=endpoint.pk, reason="OPERATOR", actor=ACTOR)

    refused = client.post(address, given)

    assert "The webhook was disabled again after this page was opened." in text_of(refused)
    endpoint.refresh_from_db()
    assert not endpoint.is_enabled


def test_delivery_is_sent_again(delivery: Delivery) -> None:
    done = person("operator").post(f"{DELIVERIES}{delivery.pk}/redeliver/", follow=True)

    assert "The message is queued for redelivery." in text_of(done)
    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempts) == ("WAITING", 0)
    event = AuditEvent.objects.get(action="webhook.redeliver")
    assert event.actor_name == "operator-person"
    assert event.details == {"delivery": delivery.pk}


def test_reason_of_an_inactive_endpoint_is_shown(operator: User) -> None:
    gone, over = make_endpoint(operator, "gone"), make_endpoint(operator, "over")
    actions.disable_endpoint(endpoint_id=gone.pk, reason="GONE", actor=ACTOR)
    past = {"created_at": timezone.now() - 2 * DAY, "expires_at": timezone.now() - DAY}
    WebhookEndpoint.objects.filter(pk=over.pk).update(**past)
    client = person("operator")

    text = text_of(client.get(HOOKS))

    assert "Disabled by a 410 response of the receiver" in text
    assert (
        "Ended because it expired, or its owner or key is no longer valid no deliveries in 30 days"
        in text
    )
    assert shown(client.get(f"{HOOKS}?status=disabled")) == [gone.pk]


def test_endpoints_are_found(operator: User) -> None:
    one = make_endpoint(operator)
    make_endpoint(User.objects.create(username="other"))
    client = person("viewer")

    assert shown(client.get(f"{HOOKS}?q={one.pk}")) == [one.pk]
    assert shown(client.get(f"{HOOKS}?q=operator")) == [one.pk]
    assert shown(client.get(f"{HOOKS}?q=chat")) == []


def test_deliveries_are_found(operator: User) -> None:
    one, other = make_endpoint(operator), make_endpoint(operator, "other")
    failed = make_delivery(one, status="FAILED")
    late = make_delivery(one, created_at=timezone.now() - 2 * HOUR)
    waiting, delivered = make_delivery(other), make_delivery(other, status="DELIVERED")
    client = person("viewer")

    for query, found in {
        "": [delivered, waiting, late, failed],
        "?status=FAILED": [failed],
        "?status=WAITING": [waiting, late],
        "?status=late": [late],
        f"?endpoint={other.pk}": [delivered, waiting],
        f"?endpoint={other.pk}&status=DELIVERED": [delivered],
        "?endpoint=OTHER": [delivered, waiting],
        "?endpoint=nobody": [],
        f"?q=msg_{late.event_id.hex}": [late],
        "?q=other": [],
    }.items():
        assert shown(client.get(DELIVERIES + query)) == [one.pk for one in found], query


def test_a_webhook_can_be_typed(endpoint: WebhookEndpoint) -> None:
    assert 'name="endpoint"' in person("viewer").get(DELIVERIES).content.decode()


def test_deliveries_are_paginated(endpoint: WebhookEndpoint) -> None:
    """Fifty per page: each page reads its rows and one more, however many exist."""
    made = [make_delivery(endpoint).pk for _ in range(60)]
    client = person("viewer")

    with statements() as sqls:
        first = client.get(f"{DELIVERIES}?endpoint={endpoint.pk}")
    reads_of("webhooks_delivery", sqls)
    second = client.get(DELIVERIES + first.context["cl"].next_url)

    assert [*shown(first), *shown(second)] == made[::-1]
    assert second.context["cl"].next_url is None


def test_number_of_statements_is_constant_for_many_endpoints(operator: User) -> None:
    client, counted = person("viewer"), []
    for _ in range(2):
        for _ in range(5):
            make_delivery(make_endpoint(operator))
        with statements() as sqls:
            client.get(HOOKS)
        counted.append(len(sqls))
    assert counted[0] == counted[1]


@pytest.mark.long
def test_hostile_addresses_are_rejected(delivery: Delivery) -> None:
    client = person("operator")
    client.raise_request_exception = False
    values = ("a%00b", "%ed%a0%80", "9" * 30, "9" * 4400, "-1", "[0,1e999]", '[0,"x"]',
              "[0," + "9" * 30 + "]", "[0,null]", "[[]]")  # fmt: skip
    pages = [
        *(f"{where}?{name}={value}" for where in (HOOKS, DELIVERIES) for value in values
          for name in ("q", "status", "endpoint", "after", "before", "url", "secret")),
        *(f"{where}{value}/{tail}/" for where in (HOOKS, DELIVERIES) for value in values
          for tail in ("change", "disable", "redeliver", "history")),
    ]  # fmt: skip

    assert [page[:90] for page in pages if client.get(page).status_code >= 500] == []
    for column in ("url", "url__startswith", "secret", "endpoint__url", "encryption_key"):
        for where in (HOOKS, DELIVERIES):
            assert client.get(f"{where}?{column}=https").status_code in (302, 400), column


def test_unknown_id_redirects_to_the_start_page(db: None) -> None:
    client = person("operator")
    pages = [
        *(f"{HOOKS}{uuid.uuid4()}/{tail}/" for tail in ("change", "disable", "enable")),
        *(f"{DELIVERIES}7/{tail}/" for tail in ("change", "redeliver")),
    ]
    for page in pages:
        answer = client.get(page, follow=True)
        assert answer.redirect_chain == [("/admin/", 302)]
        assert "Perhaps it was deleted?" in text_of(answer)


def test_overview_counts_undelivered_messages(endpoint: WebhookEndpoint) -> None:
    now = timezone.now()
    make_delivery(endpoint, status="DELIVERED", created_at=now - 2 * HOUR)
    make_delivery(endpoint)
    make_delivery(endpoint, status="FAILED", created_at=now - 8 * DAY)
    client = person("viewer")
    assert undelivered(client).number.value == 0

    failed = [
        make_delivery(endpoint, status="FAILED", created_at=now - days * DAY, error="no answer")
        for days in (6, 1)
    ]
    late = make_delivery(endpoint, created_at=now - 2 * HOUR)
    # It is tried again only tomorrow, and waits nevertheless.
    Delivery.objects.waiting().update(next_attempt_at=F("next_attempt_at") + DAY)

    found = undelivered(client)

    assert str(found.number) == "3"
    assert [row.pk for row in found.rows] == [failed[1].pk, failed[0].pk, late.pk]
    text = text_of(client.get("/admin/"))
    assert "Failed or late webhook deliveries" in text
    assert "state.push to chat Failed, created 1 day ago : no answer" in text
    assert [label for label, _ in found.links] == ["All failed deliveries", "1 waiting"]
    (_, every_failed), (_, every_late) = found.links
    assert len(shown(client.get(every_failed))) == 3
    assert shown(client.get(every_late)) == [late.pk]


def test_overview_ignores_failures_of_disabled_webhooks(endpoint: WebhookEndpoint) -> None:
    make_delivery(endpoint)
    actions.disable_endpoint(endpoint_id=endpoint.pk, reason="OPERATOR", actor=Actor(name="test"))

    assert Delivery.objects.failed().count() == 1
    assert undelivered(person("viewer")).number.value == 0


def test_overview_limits_the_count_of_failures(
    monkeypatch: pytest.MonkeyPatch, endpoint: WebhookEndpoint
) -> None:
    monkeypatch.setattr("infra_service.console.overview.webhooks.MOST", 3)
    for _ in range(5):
        make_delivery(endpoint, status="FAILED")

    assert str(undelivered(person("viewer")).number) == "3+"


def undelivered(client: Any) -> Any:
    found = client.get("/admin/").context["overview"]["findings"]
    return next(finding for finding in found if finding.name == "undelivered")
