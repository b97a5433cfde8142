"""Filters of webhooks compare the recorded event, even for deleted rows."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from infra_service.webhooks.models import WebhookEvent
from states.models import Application, Component, Environment, State
from tests.conftest import ApiClient, ClientWith
from tests.infra_service.webhooks.conftest import deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver
from tests.infra_service.webhooks.test_timed import MINUTE, long_ago
from tests.states.conftest import Backend, document
from workloads.models import Cluster

CLUSTERS = "/api/v1/clusters"
OF_CLUSTERS = ("cluster.create", "cluster.update", "cluster.delete")


def deliveries(receiver: Receiver) -> dict[str, list[str]]:
    """Return the delivered event types by the path that received them."""
    found: dict[str, list[str]] = {}
    for one in receiver.received:
        found.setdefault(one.path.removeprefix("/hook/"), []).append(one.type.split(".")[1])
    return found


def hooks(client: ApiClient, receiver: Receiver, *types: str, **filters: str) -> None:
    for path, text in filters.items():
        hook_of(client, receiver, *types, url=f"{receiver.url}/{path}", filter=text)


def changed_cluster(client: ApiClient) -> str:
    """Create a cluster, change it, rename it, and delete it; return its id."""
    cluster = client.send("POST", CLUSTERS, {"cluster": {"name": "old"}}).json()["cluster"]
    path = f"{CLUSTERS}/{cluster['id']}"
    for changes in ({"report_interval_seconds": 5}, {"name": "new"}):
        assert client.send("PATCH", path, {"cluster": changes}).status_code == 200
    assert client.delete(path).status_code == 204
    return str(cluster["id"])


@pytest.mark.both
@pytest.mark.parametrize("is_late", [False, True])
def test_renamed_and_deleted_cluster_is_matched(
    is_late: bool, client: ApiClient, receiver: Receiver
) -> None:
    """Each event has the name at its time; a renamed cluster's event has the new name."""
    filters = {
        "old": "field['cluster'] = 'old'",
        "new": "field['cluster'] = 'new'",
        "others": "field['cluster'] != 'new'",
        "either": "field['cluster'] IN ('old', 'new')",
        "neither": "field['cluster'] NOT IN ('old', 'new')",
        "all": "",
    }
    hooks(client, receiver, *OF_CLUSTERS, **filters)
    if not is_late:
        send = client.send

        def send_and_deliver(*arguments: Any) -> Any:
            answer = send(*arguments)
            deliver()
            return answer

        client.send = send_and_deliver  # type: ignore[method-assign]
    changed_cluster(client)
    deliver()

    assert deliveries(receiver) == {
        "old": ["create", "update"],
        "others": ["create", "update"],
        "new": ["update", "delete"],
        "either": ["create", "update", "update", "delete"],
        "all": ["create", "update", "update", "delete"],
    }


def test_renamed_cluster_matches_by_both_names(client: ApiClient, receiver: Receiver) -> None:
    hook_of(client, receiver, *OF_CLUSTERS)
    changed_cluster(client)
    deliver()

    shown = [(one.payload["data"]["name"], one.payload["data"].get("renamed_from")) for one in
             receiver.received]  # fmt: skip
    assert shown == [("old", None), ("old", None), ("new", "old"), ("new", None)]


def test_event_of_a_deleted_cluster_is_matched_by_id_and_binding(
    client: ApiClient, client_with: ClientWith, receiver: Receiver
) -> None:
    cluster = client.send("POST", CLUSTERS, {"cluster": {"name": "one"}}).json()["cluster"]
    other = client.send("POST", CLUSTERS, {"cluster": {"name": "two"}}).json()["cluster"]
    hooks(client, receiver, *OF_CLUSTERS, by_id=f"field['cluster_id'] = '{cluster['id']}'")
    bound = client_with("webhook:write", "cluster:read", bound_cluster_id=cluster["id"])
    hook_of(bound, receiver, *OF_CLUSTERS, url=f"{receiver.url}/bound")
    for one in (cluster, other):
        client.delete(f"{CLUSTERS}/{one['id']}")
    deliver()

    assert deliveries(receiver) == {"by_id": ["delete"], "bound": ["delete"]}


def test_event_of_a_deleted_state_is_matched(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    backend.push(document())
    Environment.objects.filter(pk=backend.environment_id).update(slug="production")
    Component.objects.filter(pk=backend.component_id).update(slug="network")
    types = ("state.push", "state.delete")
    by_environment = "field['environment'] = 'production'"
    by_component = "field['component'] = 'network' and field['application'] IS NULL"
    hooks(client, receiver, *types, environment=by_environment, component=by_component)
    hooks(client, receiver, *types, other="field['environment'] = 'staging'")
    backend.push(document(2))
    assert client.delete(f"/api/v1/states/{backend.record.pk}").status_code in (200, 204)
    deliver()

    assert deliveries(receiver) == {
        "environment": ["push", "delete"],
        "component": ["push", "delete"],
    }


def test_a_renamed_environment_after_its_event_is_published(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    """A waiting delivery keeps the names of its event, not their current meaning."""
    backend.push(document())
    environment = Environment.objects.get(pk=backend.environment_id)
    application = Application.objects.create(name="shop", slug="shop")
    State.objects.update(application=application)
    Environment.objects.filter(pk=environment.pk).update(slug="before")
    hooks(client, receiver, "state.push", before="field['environment'] = 'before'")
    backend.push(document(2))
    deliver()
    recorded = WebhookEvent.objects.get()
    names = (recorded.environment_slug, recorded.application_slug, recorded.cluster_name)
    Environment.objects.filter(pk=environment.pk).update(slug="after")
    backend.push(document(3))
    deliver()

    assert names == ("before", "shop", None)
    assert [one.payload["data"]["serial"] for one in receiver.received] == [2]


def test_scheduled_events_of_a_cluster_are_matched(client: ApiClient, receiver: Receiver) -> None:
    hooks(client, receiver, "cluster.unreachable", a="field['cluster'] = 'a'")
    long_ago()
    last_contact = timezone.now() - 10 * MINUTE
    for name in "ab":
        Cluster.objects.create(
            name=name, last_received_at=last_contact, last_report_at=last_contact
        )
    deliver()

    assert [one.payload["data"]["name"] for one in receiver.received] == ["a"]
