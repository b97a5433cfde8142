"""States in the admin: the list, and what may be done to one."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apikeys.models import AuditEvent
from states.models import Application, State
from tests.people import person, reads_of, statements, text_of
from tests.states.conftest import Backend, document

LIST = "/admin/states/state/"


def page(state: State, name: str = "change") -> str:
    return f"{LIST}{state.pk}/{name}/"


@pytest.fixture
def state(backend: Backend, lock_id: uuid.UUID) -> State:
    """A state with two versions, locked, with names around it."""
    assert backend.push(document(1)).status_code == 200
    assert (
        backend.push(document(2, outputs={"a": {"value": 1, "type": "number"}})).status_code == 200
    )
    assert backend.lock(lock_id).status_code == 200
    return named(backend.record, "network", "production")


@pytest.fixture
def free(state: State, backend: Backend, lock_id: uuid.UUID) -> State:
    """The same, not locked."""
    assert backend.unlock(lock_id).status_code == 200
    return State.objects.get()


def named(state: State, component: str, environment: str) -> State:
    type(state.component).objects.filter(pk=state.component_id).update(name=component)
    type(state.environment).objects.filter(pk=state.environment_id).update(name=environment)
    return State.objects.get(pk=state.pk)


def last_event() -> AuditEvent:
    return AuditEvent.objects.order_by("-id")[0]


@pytest.mark.parametrize(
    ("group", "statuses"),
    [
        ("", [403, 403, 403, 403, 403, 403, 403]),
        ("viewer", [200, 200, 200, 403, 403, 403, 403]),
        ("operator", [200, 200, 200, 403, 200, 200, 403]),
        ("administrator", [200, 200, 200, 200, 200, 200, 200]),
    ],
)
def test_who_may_open_what(state: State, group: str, statuses: list[int]) -> None:
    client = person(*filter(None, [group]))
    pages = [
        LIST, page(state), page(state, "compare") + "?before=1&after=2",
        page(state, "versions/2/document"), page(state, "force-unlock"),
        page(state, "restore-version"), page(state, "delete-state"),
    ]  # fmt: skip

    assert [client.get(path).status_code for path in pages] == statuses
    # Nothing that may not be opened may be done, and nothing is changed by looking.
    posted = [client.post(path, {"reason": "x"}).status_code for path in pages[4:]]
    if statuses[4] == 403:
        assert posted == [403, 403, 403]
        assert State.objects.get().revision == state.revision


def test_nobody_is_sent_to_log_in(state: State) -> None:
    for path in (LIST, page(state), page(state, "force-unlock"), page(state, "compare")):
        answer = Client().get(path)
        assert (answer.status_code, answer["Location"][:13]) == (302, "/admin/login/"), path


def test_undeleting_is_for_administrators(free: State, admin: Backend) -> None:
    assert admin.delete().status_code == 200
    for group, status in (("viewer", 403), ("operator", 403), ("administrator", 200)):
        assert person(group).get(page(free, "undelete")).status_code == status


def test_the_list_tells_who_locks_for_how_long(state: State) -> None:
    client = person("viewer")
    assert "network production locked for 0 minutes by ada@laptop 2" in text_of(client.get(LIST))
    assert b"status-warning" in client.get(LIST).content

    since = timezone.now() - dt.timedelta(hours=3, minutes=5)
    State.objects.update(lock_acquired_at=since)
    assert "locked for 3 hours by ada@laptop" in text_of(client.get(LIST))
    assert b"status-error" in client.get(LIST).content


def test_the_list_finds_by_names_and_ids(state: State) -> None:
    client = person("viewer")
    for words, found in (
        ("net", True), ("network prod", True), (str(state.pk), True), ("'network' \"prod\"", True),
        (str(state.component_id), True), ("staging", False), ("network staging", False),
        ("etwork", False), (str(uuid.uuid4()), False), ("100%", False),
    ):  # fmt: skip
        shown = text_of(client.get(LIST, {"q": words}))
        assert ("1 state" in shown) is found, words
        assert ("No states" in shown) is not found, words
    assert client.get(LIST, {"q": "\0"}).status_code in (200, 302)


def test_the_list_by_standing(state: State, backend: Backend, client_with: Any) -> None:
    client = person("viewer")

    def shown(standing: str) -> bool:
        return "1 state" in text_of(client.get(LIST, {"is": standing}))

    assert (shown("locked"), shown("stale"), shown("deleted")) == (True, False, False)
    State.objects.update(lock_acquired_at=timezone.now() - dt.timedelta(minutes=61))
    assert (shown("locked"), shown("stale"), shown("deleted")) == (True, True, False)
    State.objects.update(lock_id=None, lock_info=None, lock_acquired_at=None)
    assert (shown("locked"), shown("stale"), shown("deleted")) == (False, False, False)
    State.objects.update(deleted_at=timezone.now())
    assert (shown("locked"), shown("stale"), shown("deleted")) == (False, False, True)
    assert "No states" in text_of(client.get(LIST))


def test_pages_of_the_list_cost_the_same(db: None, client_with: Any) -> None:
    client = person("viewer")
    application = Application.objects.create(name="billing")

    def add(count: int) -> None:
        for _ in range(count):
            backend = Backend(client_with("state:write"))
            assert backend.lock(uuid.uuid4()).status_code == 200
            named(backend.record, "network", "production")
        State.objects.update(application=application)

    costs = []
    for count in (30, 30):
        add(count)
        for query in ("", "?is=locked", "?is=deleted", "?q=network", "?q=billing+production"):
            with statements() as found:
                assert client.get(LIST + query).status_code == 200
            assert len(reads_of("states_state", found)) == 1, query
            costs.append(len(found))
    assert costs[:5] == costs[5:]

    first = client.get(LIST)
    assert "50 states on this page" in text_of(first)
    following = client.get(LIST + first.context["cl"].next_url)
    assert "10 states on this page" in text_of(following)
    shown = {row.pk for answer in (first, following) for row in answer.context["cl"].result_list}
    assert len(shown) == 60


def test_force_unlock_needs_a_reason_and_is_in_the_trail(state: State) -> None:
    client = person("operator")
    form = client.get(page(state, "force-unlock"), {"holder": "grace@x", "lock_id": "x"})
    shown = form.content.decode()
    assert str(state.lock_id) in shown
    assert "ada@laptop, OperationTypeApply since 2026-11-21T06:50:11.123456789Z" in shown
    assert "grace" not in shown, "an address does not say who holds a lock"

    refused = client.post(page(state, "force-unlock"), {"lock_id": state.lock_id, "reason": "  "})
    assert "This field is required." in text_of(refused)
    assert State.objects.get().lock_id == state.lock_id

    done = client.post(
        page(state, "force-unlock"),
        {"lock_id": state.lock_id, "reason": "ada is on holiday"},
        follow=True,
    )
    assert "The lock is broken." in text_of(done)
    assert State.objects.get().lock_id is None
    event = last_event()
    assert (event.action, event.actor_name) == ("state.force_unlock", "operator-person")
    assert event.resource_id == str(state.pk)
    assert event.details["reason"] == "ada is on holiday"
    assert event.details["lock"]["who"] == "ada@laptop"
    assert event.address == "127.0.0.1"
    again = client.get(page(state, "force-unlock"), follow=True)
    assert "Force-unlock is not possible any more." in text_of(again)


def test_only_the_lock_that_was_looked_at_is_broken(state: State) -> None:
    answer = person("operator").post(
        page(state, "force-unlock"), {"lock_id": uuid.uuid4(), "reason": "stuck"}
    )
    assert "The given lock ID does not hold this state." in text_of(answer)
    assert State.objects.get().lock_id == state.lock_id


def test_a_request_from_elsewhere_changes_nothing(state: State) -> None:
    client = person("administrator", enforce_csrf_checks=True)
    for name in ("force-unlock", "restore-version", "delete-state"):
        given = {"lock_id": state.lock_id, "reason": "x", "number": 1}
        assert client.post(page(state, name), given).status_code == 403
        assert client.get(page(state, name), given).status_code == 200
    assert State.objects.get().revision == state.revision


def test_restore(free: State, backend: Backend) -> None:
    client = person("operator")
    form = client.get(page(free, "restore-version"), {"number": "1"})
    assert 'value="1"' in form.content.decode()

    done = client.post(
        page(free, "restore-version"), {"number": 1, "reason": "bad apply"}, follow=True
    )

    assert "Version 1 is restored as version 3." in text_of(done)
    assert backend.get().content == document(3)
    event = last_event()
    assert (event.action, event.actor_name) == ("state.read", "operator")
    event = AuditEvent.objects.get(action="state.restore")
    assert (event.actor_name, event.details["restored"]) == ("operator-person", 1)
    assert event.details["reason"] == "bad apply"


def test_what_the_rules_refuse_is_told(state: State) -> None:
    client = person("administrator")
    locked = "The state is locked by ada@laptop"
    restored = client.post(page(state, "restore-version"), {"number": 1})
    assert locked in text_of(restored)
    assert locked in text_of(client.post(page(state, "delete-state")))
    missing = client.post(page(state, "restore-version"), {"number": 9})
    assert "The state has no version of this number" in text_of(missing)
    for number in ("", "0", "x", str(2**31)):
        answer = client.post(page(state, "restore-version"), {"number": number})
        assert "Please correct what is marked below." in text_of(answer), number
    assert State.objects.get().revision == state.revision


def test_delete_and_undelete(free: State, backend: Backend) -> None:
    client = person("administrator")
    done = client.post(page(free, "delete-state"), follow=True)
    assert "The state is deleted" in text_of(done)
    assert backend.get().status_code == 404
    assert (last_event().action, last_event().actor_name) == (
        "state.delete",
        "administrator-person",
    )

    done = client.post(page(free, "undelete"), follow=True)
    assert "The state is back." in text_of(done)
    assert backend.get().status_code == 200
    assert AuditEvent.objects.filter(action="state.undelete").count() == 1


def test_what_is_offered(state: State, admin: Backend, lock_id: uuid.UUID) -> None:
    def offered(group: str) -> list[str]:
        answer = person(group).get(page(state))
        return [tool["tool"].label for tool in answer.context["tools"]]

    assert offered("viewer") == []
    assert offered("operator") == ["Force-unlock", "Restore a version"]
    assert offered("administrator") == ["Force-unlock", "Restore a version", "Delete"]
    admin.unlock(lock_id)
    admin.delete()
    assert [
        t["tool"].label for t in person("administrator", "viewer").get(page(state)).context["tools"]
    ] == ["Undelete"]


def test_what_is_not_there(db: None) -> None:
    client = person("administrator")
    nothing = f"{LIST}{uuid.uuid4()}"
    assert client.get(f"{nothing}/change/").status_code == 302
    assert client.get(f"{nothing}/force-unlock/").status_code == 302
    assert client.get(f"{nothing}/compare/").status_code == 404
    assert client.get(f"{nothing}/versions/1/document/").status_code == 404
    assert client.get(f"{LIST}x/compare/").status_code == 404
    assert client.get(f"{LIST}add/").status_code == 403


def test_nothing_is_edited(state: State) -> None:
    client = person("administrator")
    assert client.post(page(state), {"serial": 9}).status_code == 403
    assert client.get(page(state, "delete")).status_code == 403
