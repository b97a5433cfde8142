"""``state.resources_changed``: from a push over the index and the audit log to a receiver."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apikeys.models import AuditEvent
from infra_service.change_history import recording
from infra_service.change_history.models import Change, RecordedState
from infra_service.webhooks.resource_changes import MOST_RESOURCES
from states.keeping.loading import loader
from states.models import State
from tests.conftest import ApiClient, ClientWith
from tests.infra_service.change_history.test_recording import push, thing
from tests.infra_service.webhooks.conftest import deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver
from tests.states.conftest import Backend
from tests.states.indexed import index

TYPE = "state.resources_changed"
#: JSON escapes each character with twelve bytes.
ROCKETS = "\U0001f680" * 400
pytestmark = pytest.mark.both


def data(receiver: Receiver) -> list[Any]:
    deliver()
    return [message.payload["data"] for message in receiver.received]


def recorded() -> list[int]:
    found = AuditEvent.objects.filter(action=TYPE).order_by("id")
    return [event.details["version"] for event in found]


def test_receiver_gets_counts_and_addresses(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    hook_of(client, receiver, TYPE)
    push(backend, 1, thing("a"), thing("b"), thing("secretive", password="hunter2"))
    index()
    push(backend, 2, thing("a", size=1), thing("c"), thing("secretive", password="hunter3"))
    assert recorded() == [1]  # the push itself records no event
    index()
    index()

    first, second = data(receiver)

    assert first["changes"] == {"ADDED": 3}
    state = State.objects.get()
    version = state.current_version
    assert version is not None
    assert second == {
        "id": str(state.pk),
        "actor": "command index_states",
        "pushed_by": version.created_by,
        "version": 2,
        "changes": {"REMOVED": 1, "CHANGED": 2, "ADDED": 1},
        "resources": [
            {"action": "REMOVED", "address": "thing.b"},
            {"action": "CHANGED", "address": "thing.a"},
            {"action": "CHANGED", "address": "thing.secretive"},
            {"action": "ADDED", "address": "thing.c"},
        ],
        "component_id": str(state.component_id),
        "component": None,
        "environment_id": str(state.environment_id),
        "environment": None,
        "application_id": None,
        "application": None,
    }
    assert "hunter" not in json.dumps([first, second])


def test_binding_and_filter_of_an_endpoint_apply(
    client: ApiClient, client_with: ClientWith, backend: Backend, receiver: Receiver
) -> None:
    other = Backend(client)
    bound = client_with(
        "webhook:write", "state:read", bound_component_ids=[str(other.component_id)]
    )
    hooks = [
        hook_of(bound, receiver, TYPE),
        hook_of(client, receiver, TYPE, filter=f"field['component_id'] = '{backend.component_id}'"),
        hook_of(client, receiver, "state.create"),
    ]
    push(backend, 1, thing("a"))
    push(other, 1, thing("b"))
    index()
    deliver()

    states = [[one["resource_id"] for one in hook.deliveries()] for hook in hooks]
    own, others = str(backend.record.pk), str(other.record.pk)
    assert states == [[others], [own], [own, others]]


def test_body_is_bounded(client: ApiClient, backend: Backend, receiver: Receiver) -> None:
    hook_of(client, receiver, TYPE)
    push(backend, 1, *(thing(f"t{number:03}") for number in range(300)))
    push(backend, 2, *(thing(f"{number:03}{ROCKETS}") for number in range(300)))
    index()

    first, second = data(receiver)

    assert (first["changes"], len(first["resources"])) == ({"ADDED": 300}, MOST_RESOURCES)
    assert second["changes"] == {"REMOVED": 300, "ADDED": 300}
    push(backend, 3)
    index()
    third = data(receiver)[-1]
    assert 0 < len(third["resources"]) < MOST_RESOURCES
    assert all(len(message.body) < 20_000 for message in receiver.received)


def test_event_is_recorded_only_for_subscribers(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    hook_of(client, receiver, "state.push")
    push(backend, 1, thing("a"))
    index()
    hook_of(client, receiver, TYPE)
    push(backend, 2, thing("b"))
    index()

    assert recorded() == [2]


def test_each_version_has_a_single_event(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    hook_of(client, receiver, TYPE)
    push(backend, 1, thing("a"))
    push(backend, 2, thing("a"))
    push(backend, 3, thing("a"), thing("b"))
    assert backend.push(b'{"version": 3, "serial": 4}').status_code == 200
    index()
    list(recording.rebuild())
    recording.receive(state=backend.record, load=loader())

    # The second version changes nothing, and the changes of the fourth are unknown.
    assert recorded() == [1, 3]


def test_versions_from_before_an_upgrade_have_no_event(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    hook_of(client, receiver, TYPE)
    push(backend, 1, thing("a"))
    push(backend, 2, thing("a"), thing("b"))
    index()
    before = recorded()
    Change.objects.all().delete()
    RecordedState.objects.all().delete()
    push(backend, 3, thing("a"), thing("b"), thing("c"))
    index()

    assert recorded() == [*before, 3]
    assert Change.objects.filter(version_number__lt=3).count() == 2
