"""States in the admin: access and actions."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apikeys.models import AuditEvent
from states.keeping import reading
from states.lock_holders import holder_of
from states.models import Component, Environment, State
from tests.states.conftest import Backend, document
from tests.states.samples import AFTER, BEFORE, ENCRYPTED, PASSWORDS
from tests.support.people import confirm, person, text_of

LIST = "/admin/states/state/"


def page(state: State, name: str = "change") -> str:
    return f"{LIST}{state.pk}/{name}/"


@pytest.fixture
def state(locked_state: State) -> State:
    return locked_state


@pytest.fixture
def free(state: State, backend: Backend, lock_id: uuid.UUID) -> State:
    """The same, not locked."""
    assert backend.unlock(lock_id).status_code == 200
    return State.objects.get()


def test_a_lock_is_stale_after_an_hour(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    taken_at = state.lock_acquired_at
    assert taken_at is not None

    def is_stale_after(time: dt.timedelta) -> bool:
        monkeypatch.setattr(timezone, "now", lambda: taken_at + time)
        holder = holder_of(state)
        assert holder is not None
        return holder.is_stale

    assert not is_stale_after(dt.timedelta(hours=1))
    assert is_stale_after(dt.timedelta(hours=1, microseconds=1))


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
def test_pages_require_permissions(state: State, group: str, statuses: list[int]) -> None:
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


def test_anonymous_visitors_are_redirected_to_the_login(state: State) -> None:
    for path in (LIST, page(state), page(state, "force-unlock"), page(state, "compare")):
        answer = Client().get(path)
        assert (answer.status_code, answer["Location"][:13]) == (302, "/admin/login/"), path


def test_undeleting_is_for_administrators(free: State, admin: Backend) -> None:
    assert admin.delete().status_code == 200
    for group, status in (("viewer", 403), ("operator", 403), ("administrator", 200)):
        assert person(group).get(page(free, "undelete")).status_code == status


def test_force_unlock_requires_a_reason_and_is_audited(state: State) -> None:
    client = person("operator")
    form = client.get(page(state, "force-unlock"), {"holder": "grace@x", "lock_id": "x"})
    shown = form.content.decode()
    assert str(state.lock_id) in shown
    since = f"{state.lock_acquired_at:%Y-%m-%d %H:%M:%S} UTC"
    assert f"ada@laptop, apply since {since}" in shown
    assert "grace" not in shown, "an address does not say who holds a lock"

    refused = confirm(client, page(state, "force-unlock"), {"reason": "  "})
    assert "This field is required." in text_of(refused)
    assert State.objects.get().lock_id == state.lock_id

    given = {"reason": "ada is on holiday"}
    done = confirm(client, page(state, "force-unlock"), given, follow=True)
    assert "Lock released." in text_of(done)
    assert State.objects.get().lock_id is None
    event = AuditEvent.objects.get(action="state.force_unlock")
    assert event.actor_name == "operator-person"
    assert event.resource_id == str(state.pk)
    assert event.details["reason"] == "ada is on holiday"
    assert event.details["lock"]["who"] == "ada@laptop"
    assert event.address == "127.0.0.1"
    again = client.get(page(state, "force-unlock"), follow=True)
    assert "Force-unlock is no longer possible." in text_of(again)


def test_only_the_lock_that_was_looked_at_is_broken(state: State) -> None:
    answer = person("operator").post(
        page(state, "force-unlock"), {"displayed": str(uuid.uuid4()), "reason": "stuck"}
    )
    assert "Another lock was acquired after this page was opened." in text_of(answer)
    assert State.objects.get().lock_id == state.lock_id


def test_requests_without_csrf_token_are_rejected(state: State) -> None:
    client = person("administrator", enforce_csrf_checks=True)
    for name in ("force-unlock", "restore-version", "delete-state"):
        given = {"displayed": state.lock_id, "reason": "x", "number": 1}
        assert client.post(page(state, name), given).status_code == 403
        assert client.get(page(state, name), given).status_code == 200
    assert State.objects.get().revision == state.revision


def test_operator_restores_a_version(free: State, backend: Backend) -> None:
    client = person("operator")
    form = client.get(page(free, "restore-version"), {"number": "1"})
    assert 'value="1"' in form.content.decode()

    given = {"number": 1, "reason": "bad apply"}
    done = confirm(client, page(free, "restore-version"), given, follow=True)

    assert "Version 1 is restored as version 3." in text_of(done)
    assert backend.get().content == document(3)
    event = last_event()
    assert (event.action, event.actor_name) == ("state.read", "operator")
    event = AuditEvent.objects.get(action="state.restore")
    assert (event.actor_name, event.details["restored"]) == ("operator-person", 1)
    assert event.details["reason"] == "bad apply"


def test_a_restore_of_an_outdated_page_is_refused(free: State, backend: Backend) -> None:
    client = person("operator")
    shown = client.get(page(free, "restore-version"), {"number": "1"}).context
    given = {"number": 1, "displayed": shown["displayed"]}
    assert backend.push(document(3)).status_code == 200

    for _ in range(2):  # the page with the refusal is outdated, too
        refused = client.post(page(free, "restore-version"), given)
        assert "Another version was stored after this page was opened." in text_of(refused)
        assert backend.get().content == document(3)
        given["displayed"] = refused.context["displayed"]

    assert confirm(client, page(free, "restore-version"), {"number": 1}).status_code == 302
    given["displayed"] = "3"
    again = client.post(page(free, "restore-version"), given)
    assert "Another version was stored after this page was opened." in text_of(again)


def test_a_page_restores_a_version_once(
    free: State, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = person("operator")
    given = {"number": 1, "displayed": "2"}
    find = reading.find_version

    def find_after_second_click(**version: Any) -> Any:
        monkeypatch.setattr(reading, "find_version", find)
        assert client.post(page(free, "restore-version"), given).status_code == 302
        return find(**version)

    monkeypatch.setattr(reading, "find_version", find_after_second_click)

    refused = client.post(page(free, "restore-version"), given)

    assert "Another version was stored after this page was opened." in text_of(refused)
    assert State.objects.get().version_number == 3


def test_rejected_actions_show_the_reason(state: State) -> None:
    client = person("administrator")
    locked = "The state is locked by ada@laptop"
    restored = confirm(client, page(state, "restore-version"), {"number": 1})
    assert locked in text_of(restored)
    assert locked in text_of(confirm(client, page(state, "delete-state"), {"reason": "x"}))
    missing = confirm(client, page(state, "restore-version"), {"number": 9})
    assert "The state has no version with this number" in text_of(missing)
    for number in ("", "0", "x", str(2**31)):
        answer = client.post(page(state, "restore-version"), {"number": number})
        assert "Correct the marked fields." in text_of(answer), number
    assert State.objects.get().revision == state.revision


def test_deleted_state_is_restored(free: State, backend: Backend) -> None:
    client = person("administrator")
    refused = confirm(client, page(free, "delete-state"), {"reason": " "})
    assert "This field is required." in text_of(refused)
    assert backend.get().status_code == 200

    done = confirm(client, page(free, "delete-state"), {"reason": "moved"}, follow=True)
    assert "The state is deleted" in text_of(done)
    assert "Deleted just now" in text_of(done)
    assert backend.get().status_code == 404
    event = AuditEvent.objects.get(action="state.delete")
    assert event.actor_name == "administrator-person"
    assert event.details == {"version": 2, "reason": "moved"}

    done = confirm(client, page(free, "undelete"), {}, follow=True)
    assert "State restored." in text_of(done)
    assert backend.get().status_code == 200
    assert AuditEvent.objects.filter(action="state.undelete").count() == 1


def test_an_outdated_page_deletes_and_undeletes_nothing(free: State, admin: Backend) -> None:
    client = person("administrator")
    given = {"displayed": client.get(page(free, "delete-state")).context["displayed"]}
    admin.push(document(3))
    refused = client.post(page(free, "delete-state"), {**given, "reason": "unused"})
    assert "Another version was stored after this page was opened." in text_of(refused)
    assert State.objects.get().deleted_at is None

    admin.delete()
    given = {"displayed": client.get(page(free, "undelete")).context["displayed"]}
    admin.call(":undelete")
    admin.delete()
    refused = client.post(page(free, "undelete"), given)
    assert "The state was deleted again after this page was opened." in text_of(refused)
    assert State.objects.get().deleted_at is not None


def test_restore_shows_its_changes_before_confirmation(admin: Backend) -> None:
    admin.push(BEFORE)
    admin.push(AFTER, "?force=true")
    admin.push(ENCRYPTED, "?force=true")
    client = person("operator")

    def shown(query: dict[str, Any]) -> str:
        return text_of(client.get(page(admin.record, "restore-version"), query))

    # The default is the version before the current version.
    first = client.get(page(admin.record, "restore-version"))
    assert 'value="2"' in first.content.decode()
    assert "OpenTofu encrypted the document" in text_of(first)
    admin.push(AFTER, "?force=true")
    text = shown({"number": "1"})
    assert "Changes From version 4" in text
    assert "(sensitive value)" in text
    assert not [p for p in PASSWORDS if p.decode() in text]
    assert "The state has no version with this number" in shown({"number": "9"})
    for number in ("", "x", "0", "-1", "²", "9" * 5000):
        assert "Changes From" not in shown({"number": number}), number
    event = AuditEvent.objects.filter(actor_name="operator-person").order_by("-id")[0]
    assert event.details == {"version": 1, "part": "diff", "secrets": False}


def test_the_page_shows_a_number_that_is_no_float(admin: Backend) -> None:
    body = document(9, outputs={"size": {"value": "PLACE", "type": "number"}})
    assert admin.push(body.replace(b'"PLACE"', b"1e400"), "?force=true").status_code == 200

    assert "1E+400" in text_of(person("viewer").get(page(admin.record)))


def test_the_lock_on_the_page(state: State) -> None:
    viewer = text_of(person("viewer").get(page(state)))
    since = f"{state.lock_acquired_at:%Y-%m-%d %H:%M:%S} UTC"
    assert (
        f"Locked by ada@laptop since {since}, just now "
        "Operation apply Backend http Token of operator" in viewer
    )
    assert "Force-unlock" not in viewer
    operator = person("operator")
    assert text_of(operator.get(page(state))).count("Force-unlock") == 1
    State.objects.update(lock_acquired_at=timezone.now() - dt.timedelta(hours=3, minutes=5))
    confirmation = operator.get(f"{page(state)}".replace("change/", "force-unlock/"))
    assert " UTC, for 3 hours" in confirmation.content.decode().replace("\xa0", " ")


def test_page_shows_the_backend_configuration(state: State) -> None:
    address = f"http://testserver/api/v1/state/{state.component_id}/env/{state.environment_id}"
    text = text_of(person("viewer").get(page(state)))
    assert text.count(address) == 4
    assert f'backend "http" {{ address = "{address}" lock_address = "{address}"' in text
    assert "terraform init" in text
    assert "by ids" not in text


def test_backend_configuration_lists_names_first(state: State) -> None:
    """Names come first; IDs are the second choice."""
    Component.objects.filter(pk=state.component_id).update(name="Network", slug="network")
    Environment.objects.filter(pk=state.environment_id).update(name="Live", slug="live")
    by_ids = f"http://testserver/api/v1/state/{state.component_id}/env/{state.environment_id}"
    text = text_of(person("viewer").get(page(state)))
    assert text.count("http://testserver/api/v1/state/at/network/live") == 4
    assert 'lock_address = "http://testserver/api/v1/state/at/network/live"' in text
    assert text.count(by_ids) == 1
    assert text.index("The address by ids") < text.index(by_ids)


def test_offered_actions_depend_on_permissions(
    state: State, admin: Backend, lock_id: uuid.UUID
) -> None:
    def offered(group: str) -> list[str]:
        answer = person(group).get(page(state))
        return [tool["tool"].label for tool in answer.context["tools"]]

    assert offered("viewer") == []
    assert offered("operator") == ["Force-unlock", "Freeze"]
    admin.unlock(lock_id)
    assert offered("operator") == ["Freeze", "Restore a version"]
    assert offered("administrator") == ["Freeze", "Restore a version", "Delete"]
    admin.delete()
    assert [
        t["tool"].label for t in person("administrator", "viewer").get(page(state)).context["tools"]
    ] == ["Undelete"]


def test_missing_states_and_versions_are_not_found(db: None) -> None:
    client = person("administrator")
    nothing = f"{LIST}{uuid.uuid4()}"
    assert client.get(f"{nothing}/change/").status_code == 302
    assert client.get(f"{nothing}/force-unlock/").status_code == 302
    assert client.get(f"{nothing}/compare/").status_code == 404
    assert client.get(f"{nothing}/versions/1/document/").status_code == 404
    assert client.get(f"{LIST}x/compare/").status_code == 404
    assert client.get(f"{LIST}add/").status_code == 403


def test_states_cannot_be_edited(state: State) -> None:
    client = person("administrator")
    assert client.post(page(state), {"serial": 9}).status_code == 403
    assert client.get(page(state, "delete")).status_code == 403
