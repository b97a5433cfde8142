"""A component that leaves a caller's application between the check and the write of a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apikeys.actors import Actor
from apikeys.bindings import Binding
from apikeys.models import AuditEvent
from states.actions import catalogue, freezing, history, locks
from states.api import facts as api_facts
from states.models import Application, Component
from tests.conftest import ClientWith
from tests.states.conftest import Interrupt, document
from tests.states.test_named import ALL, Named

pytestmark = pytest.mark.both


class Moving:
    """The state of shop/network in prod, a caller bound to shop, and the move of network."""

    def __init__(self, client_with: ClientWith) -> None:
        self.anyone = Named(client_with(*ALL), "shop/network/prod")
        assert self.anyone.push(document(1)).status_code == 200
        shop = Application.objects.get()
        binding = Binding(application_ids=frozenset({shop.pk}))
        bound = client_with(*ALL, **binding.columns())
        self.bound = self.anyone.as_client(bound)
        self.root = f"/api/v1/states/{self.anyone.record.pk}"
        self.bank = Application.objects.create(name="bank", slug="bank")

    def move(self) -> None:
        catalogue.change(
            model=Component,
            entry_id=Component.objects.get().pk,
            changes={"application_id": self.bank.pk},
            actor=Actor(name="test"),
        )

    def call(self, suffix: str, **body: str) -> Any:
        method = "PUT" if suffix.endswith("/facts") else "POST"
        return self.bound.client.send(method, self.root + suffix, body)


@pytest.fixture
def moving(client_with: ClientWith) -> Moving:
    return Moving(client_with)


def assert_refused(answer: Any) -> None:
    assert answer.status_code == 404
    assert AuditEvent.objects.order_by("id").values_list("action", flat=True).last() == (
        "component.update"
    )


@pytest.mark.parametrize(
    "act",
    [
        lambda state: state.push(document(2)),
        lambda state: state.lock("95fbd66a-e378-a0c7-cc59-b576cc759358"),
        lambda state: state.delete(),
    ],
    ids=["push", "lock", "delete"],
)
def test_move_after_the_state_was_read(
    moving: Moving, act: Callable[[Any], Any], after_the_first_look: Interrupt
) -> None:
    after_the_first_look(moving.move)
    assert_refused(act(moving.bound))


@pytest.mark.parametrize(
    ("suffix", "module", "name"),
    [
        ("/versions/1:restore", history, "restore"),
        (":undelete", history, "undelete"),
        ("/versions/1/facts", api_facts, "record_facts"),
        (":freeze", freezing, "freeze"),
        (":force-unlock", locks, "force_unlock"),
    ],
)
def test_move_before_the_action_reads_the_state(
    moving: Moving, suffix: str, module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if suffix == ":undelete":
        moving.anyone.delete()
    elif suffix == ":force-unlock":
        moving.anyone.lock("95fbd66a-e378-a0c7-cc59-b576cc759358")
    real = getattr(module, name)

    def action(**given: Any) -> Any:
        moving.move()
        return real(**given)

    monkeypatch.setattr(module, name, action)
    needs_reason = suffix in (":freeze", ":force-unlock")
    assert_refused(moving.call(suffix, **({"reason": "test"} if needs_reason else {})))
