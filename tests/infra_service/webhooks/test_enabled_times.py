"""Events and the times in which a webhook was enabled, however late the worker reads them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from apikeys.actors import Actor
from infra_service.webhooks.actions import disable_endpoint
from infra_service.webhooks.models import BY_OPERATOR, Delivery, DisabledPeriod
from infra_service.webhooks.pruning import KEPT, prune
from infra_service.webhooks.subscriptions import Reach
from states.models import State
from tests.conftest import ApiClient
from tests.infra_service.webhooks.conftest import Hook, deliver, hook_of
from tests.infra_service.webhooks.receiver import Receiver
from tests.infra_service.webhooks.test_timed import DAY, hold
from tests.infra_service.webhooks.test_trail import event, names
from tests.states.conftest import Backend

OPERATOR = Actor(name="operator")


@pytest.fixture
def hook(client: ApiClient, receiver: Receiver) -> Hook:
    return hook_of(client, receiver, "cluster.create")


def enable(hook: Hook, *, enabled: bool) -> None:
    answer = hook.client.send("PATCH", hook.path, {"enabled": enabled})
    assert answer.status_code == 200, answer.content


def happen(name: str) -> None:
    event(name).save()


@pytest.mark.both
@pytest.mark.parametrize("is_late", [False, True])
def test_only_events_of_enabled_times_are_delivered(
    is_late: bool, hook: Hook, receiver: Receiver
) -> None:
    """Return whether the worker runs all the time, or only at the end."""

    def work() -> None:
        if not is_late:
            deliver()

    happen("enabled")
    work()
    for number in range(2):
        enable(hook, enabled=False)
        happen(f"disabled {number}")
        work()
        enable(hook, enabled=True)
        happen(f"enabled {number}")
        work()
    deliver()

    assert sorted(names(receiver)) == ["enabled", "enabled 0", "enabled 1"]


def test_read_while_it_is_disabled(hook: Hook, receiver: Receiver) -> None:
    """An older event is dropped like a waiting delivery, and can be redelivered."""
    happen("enabled")
    enable(hook, enabled=False)
    happen("disabled")
    deliver()
    (given_up,) = hook.deliveries()
    assert (given_up["status"], given_up["attempts"]) == ("FAILED", 0)
    assert given_up["error"] == "the webhook is disabled"

    enable(hook, enabled=True)
    deliver()
    assert names(receiver) == []
    hook.client.send("POST", f"{hook.path}/deliveries/{given_up['id']}:redeliver")
    deliver()
    assert names(receiver) == ["enabled"]


def test_an_operator_disables_a_disabled_webhook(hook: Hook, receiver: Receiver) -> None:
    """It was disabled since its owner did so, and until the operator enables it."""
    happen("enabled")
    enable(hook, enabled=False)
    happen("by its owner")
    disable_endpoint(endpoint_id=hook.endpoint.pk, reason=BY_OPERATOR, actor=OPERATOR)
    disable_endpoint(endpoint_id=hook.endpoint.pk, reason=BY_OPERATOR, actor=OPERATOR)
    happen("by an operator")
    type(hook.endpoint).objects.update(disabled_reason="OWNER")
    enable(hook, enabled=True)
    happen("enabled again")
    deliver()

    assert sorted(names(receiver)) == ["enabled", "enabled again"]
    assert DisabledPeriod.objects.count() == 2


def test_scheduled_event_uses_the_enabled_time(
    client: ApiClient, backend: Backend, receiver: Receiver
) -> None:
    """A lock became old while the webhook was disabled."""
    hook = hook_of(client, receiver, "state.lock_held")
    now = timezone.now()
    type(hook.endpoint).objects.update(
        created_at=now - 9 * DAY, disabled_at=now - 2 * DAY, disabled_reason="OWNER"
    )
    hold(backend, DAY)
    enable(hook, enabled=True)
    deliver()
    assert receiver.types() == []

    State.objects.update(lock_acquired_at=now - 3 * DAY)
    deliver()
    assert receiver.types() == ["state.lock_held"]


def test_event_at_the_moment_of_disabling_is_not_delivered(hook: Hook) -> None:
    """Its first moment is disabled, and the moment of enabling is enabled."""
    endpoint, began = hook.endpoint, hook.endpoint.created_at + DAY
    ended = began + DAY
    period = DisabledPeriod(endpoint=endpoint, began_at=began, ended_at=ended)
    reach = Reach(endpoint, endpoint.grant, (period,))
    before = dt.timedelta(microseconds=1)

    assert reach.was_enabled_at(began - before)
    assert not reach.was_enabled_at(began)
    assert not reach.was_enabled_at(ended - before)
    assert reach.was_enabled_at(ended)
    endpoint.disabled_at = ended
    assert not reach.was_enabled_at(ended)


def test_old_periods_are_removed(hook: Hook) -> None:
    now = timezone.now()
    for age in (KEPT + DAY, KEPT - DAY):
        DisabledPeriod.objects.create(
            endpoint=hook.endpoint, began_at=now - age - DAY, ended_at=now - age
        )
    list(prune())

    assert [one.ended_at for one in DisabledPeriod.objects.all()] == [now - KEPT + DAY]


def test_delivery_that_is_redelivered_meanwhile_is_not_removed(
    hook: Hook, receiver: Receiver
) -> None:
    happen("old")
    deliver()
    Delivery.objects.update(created_at=timezone.now() - KEPT - DAY)

    def redeliver(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("DELETE") and Delivery._meta.db_table in sql:
            Delivery.objects.update(status="WAITING", next_attempt_at=timezone.now())
        return execute(sql, params, many, context)

    with connection.execute_wrapper(redeliver):
        list(prune())

    assert Delivery.objects.get().status == "WAITING"
