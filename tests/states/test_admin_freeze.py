"""Freezes in the admin: the forms, the badges, the filters and the overview."""

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from apikeys.models import AuditEvent
from states.actions import freezing
from states.models import State
from tests.states.conftest import Backend
from tests.support.people import confirm, person, text_of

LIST = "/admin/states/state/"


@pytest.fixture
def state(locked_state: State, admin: Backend) -> State:
    admin.unlock(locked_state.lock_id)
    return State.objects.get(pk=locked_state.pk)


def page(state: State, tool: str = "change") -> str:
    return f"{LIST}{state.pk}/{tool}/"


def test_freeze_change_and_unfreeze(state: State, admin: Backend) -> None:
    operator = person("operator")
    form = operator.get(page(state, "freeze")).content.decode()
    assert 'name="reason"' in form
    assert "autofocus" in form
    until = (timezone.now() + dt.timedelta(days=1)).replace(second=0, microsecond=0, tzinfo=dt.UTC)

    for refused in (
        {"reason": " "},
        {"reason": "x", "expected_until": "2020-01-01T00:00"},
        {"reason": "x", "expected_until": "soon"},
    ):
        assert confirm(operator, page(state, "freeze"), refused).status_code == 200
        assert State.objects.get().frozen_at is None
    given = {"reason": "database upgrade", "expected_until": f"{until:%Y-%m-%dT%H:%M}"}
    done = confirm(operator, page(state, "freeze"), given, follow=True)

    text = text_of(done)
    assert "State frozen." in text
    assert "Frozen by operator-person, just now Reason database upgrade" in text
    assert State.objects.get().freeze_expected_until == until
    assert admin.push(b"{}").status_code == 423
    assert "is no longer possible" in text_of(operator.get(page(state, "freeze"), follow=True))

    again = operator.get(page(state, "change-freeze"))
    assert "database upgrade" in again.content.decode()
    confirm(operator, page(state, "change-freeze"), {"reason": "longer"})
    assert State.objects.get().freeze_expected_until is None

    text = text_of(confirm(operator, page(state, "unfreeze"), {"reason": ""}, follow=True))
    assert "State unfrozen." in text
    assert "Not locked" in text
    assert list(
        AuditEvent.objects.filter(action__contains="frozen").order_by("id").values_list("action")
    ) == [("state.frozen",), ("state.frozen",), ("state.unfrozen",)]


@pytest.mark.parametrize("tool", ["unfreeze", "change-freeze"])
def test_an_outdated_page_does_not_change_a_newer_freeze(
    state: State, admin: Backend, tool: str
) -> None:
    admin.call(":freeze", {"reason": "upgrade"})
    operator = person("operator")
    given = {"displayed": operator.get(page(state, tool)).context["displayed"], "reason": "done"}
    admin.call(":unfreeze")
    admin.call(":freeze", {"reason": "incident"})

    refused = operator.post(page(state, tool), given)

    assert "The freeze was changed after this page was opened." in text_of(refused)
    assert f'<a href="{page(state, tool)}"' in refused.content.decode()
    assert State.objects.get().freeze_reason == "incident"


def test_two_operators_do_not_freeze_a_state_at_the_same_time(
    state: State, admin: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    freeze = freezing.freeze

    def freeze_second(**given: Any) -> None:
        monkeypatch.setattr(freezing, "freeze", freeze)
        admin.call(":freeze", {"reason": "incident"})
        freeze(**given)

    monkeypatch.setattr(freezing, "freeze", freeze_second)

    refused = confirm(person("operator"), page(state, "freeze"), {"reason": "upgrade"})

    assert "The freeze was changed after this page was opened." in text_of(refused)
    assert State.objects.get().freeze_reason == "incident"


def test_needs_its_permission(state: State) -> None:
    viewer = person("viewer")
    for tool in ("freeze", "change-freeze", "unfreeze"):
        assert viewer.post(page(state, tool), {"reason": "x"}).status_code == 403
    assert State.objects.get().frozen_at is None


def test_offered_actions_depend_on_permissions(state: State, admin: Backend) -> None:
    def offered() -> list[str]:
        answer = person("administrator").get(page(state))
        restores = answer.content.decode().count("/restore-version/?number=")
        return [*(tool["tool"].label for tool in answer.context["tools"]), str(restores)]

    free = ["Freeze", "Restore a version", "Delete", "1"]
    assert offered() == free
    admin.call(":freeze", {"reason": "upgrade"})
    assert offered() == ["Change freeze", "Unfreeze", "0"]
    admin.call(":unfreeze")
    assert offered() == free
    lock_id = "a2bc019d-5f56-4551-8ca0-ee62e8da16b0"
    admin.lock(lock_id)
    assert offered() == ["Force-unlock", "Freeze", "0"]


def test_lists_and_overview_show_the_freeze(state: State, admin: Backend) -> None:
    viewer = person("viewer")
    admin.call(":freeze", {"reason": "upgrade", "expected_until": "2999-01-01T00:00:00Z"})

    assert "frozen for 0 minutes by operator" in text_of(viewer.get(LIST))
    assert "network" in text_of(viewer.get(f"{LIST}?is=frozen"))
    assert "network" not in text_of(viewer.get(f"{LIST}?is=overdue"))
    assert "0 Overdue freezes" in text_of(viewer.get("/admin/"))

    State.objects.update(freeze_expected_until=timezone.now() - dt.timedelta(hours=2))

    assert "network" in text_of(viewer.get(f"{LIST}?is=overdue"))
    text = text_of(viewer.get("/admin/"))
    assert "1 Overdue freezes" in text
    assert "upgrade, by operator; expected until 2 hours ago" in text
    assert "overdue" in text_of(viewer.get(page(state)))


def test_a_changed_freeze_keeps_its_expected_end(state: State, admin: Backend) -> None:
    admin.call(":freeze", {"reason": "upgrade", "expected_until": "2999-01-01T00:00:00Z"})

    form = person("operator").get(page(state, "change-freeze")).content.decode()

    assert 'value="2999-01-01T00:00"' in form


def test_links_choose_only_among_the_defaults(state: State) -> None:
    form = person("operator").get(page(state, "freeze") + "?reason=planted").content.decode()

    assert 'name="reason"' in form
    assert "planted" not in form
