"""Workspaces that are created again after the deletion of their state."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.core.management import call_command

from apikeys.actors import Actor
from apikeys.models import AuditEvent
from states.actions import history, locks, workspaces
from states.models import State, StateVersion
from tests.e2e.backend import document
from tests.states.conftest import Interrupt
from tests.states.remote.conftest import BACKEND, FIRST, SECOND, RemoteClient, error_of

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.states.remote.urls")]


@pytest.fixture
def created_again(remote: RemoteClient, locked: str) -> str:
    """The id of a workspace without a version, whose state was deleted before."""
    remote.push(locked, SECOND)
    remote.act(locked, "unlock")
    assert remote.send("DELETE", f"workspaces/{locked}").status_code == 204
    assert remote.created("network-prod", team="red") == locked
    return locked


def test_it_can_be_deleted_and_the_history_stays(remote: RemoteClient, created_again: str) -> None:
    deleted_at = State.objects.get().deleted_at
    assert remote.act(created_again, "safe-delete").status_code == 204
    assert remote.send("GET", f"workspaces/{created_again}").status_code == 404
    assert remote.act(created_again, "safe-delete").status_code == 404
    assert State.objects.get().deleted_at == deleted_at
    assert StateVersion.objects.count() == 1
    events = AuditEvent.objects.filter(action="state.delete").order_by("occurred_at", "id")
    assert [event.details["version"] for event in events] == [1, 0]


def test_a_locked_one_is_not_deleted(remote: RemoteClient, created_again: str) -> None:
    remote.act(created_again, "lock")
    assert remote.act(created_again, "safe-delete").status_code == 409


def test_it_survives_the_removal_of_the_history(remote: RemoteClient, created_again: str) -> None:
    State.objects.update(deleted_at=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    revision = State.objects.get().revision
    call_command("prune_states")

    assert not StateVersion.objects.exists()
    assert State.objects.get().revision > revision
    kept = remote.send("GET", f"workspaces/{created_again}").json()["data"]["attributes"]
    assert (kept["name"], kept["tag-names"]) == ("network-prod", ["team"])
    remote.act(created_again, "lock")
    remote.push(created_again, FIRST)
    assert remote.pulled(created_again) == FIRST


@pytest.mark.both
@pytest.mark.parametrize("is_created_again", [False, True])
def test_undeleted_workspace_has_its_name_and_tags(
    remote: RemoteClient, is_created_again: bool
) -> None:
    id_ = remote.created("Network-Prod", team="blue")
    remote.act(id_, "lock")
    remote.push(id_, SECOND)
    remote.act(id_, "unlock")
    before = State.objects.get().workspace
    assert remote.send("DELETE", f"workspaces/{id_}").status_code == 204
    if is_created_again:
        assert remote.created("network-prod", team="red") == id_

    history.undelete(state_id=State.objects.get().pk, actor=Actor(name="test"))

    after = State.objects.workspaces().get(deleted_workspace__isnull=True).workspace
    assert after == ({"tags": {"team": "red"}} if is_created_again else before)


TAGS = [{"type": "tags", "attributes": {"name": "a"}}]


@pytest.mark.parametrize("is_pushed", [True, False])
@pytest.mark.parametrize(
    "changed",
    [(locks, "lock", "actions/lock", None), (workspaces, "add_tags", "relationships/tags", TAGS)],
)
def test_a_concurrent_deletion_wins(
    remote: RemoteClient, locked: str, monkeypatch: Any, changed: Any, is_pushed: bool
) -> None:
    module, name, path, data = changed
    action = getattr(module, name)
    if is_pushed:
        remote.push(locked, FIRST)
    remote.act(locked, "unlock")

    def after_deletion(**given: Any) -> Any:
        assert remote.act(locked, "safe-delete").status_code == 204
        return action(**given)

    monkeypatch.setattr(module, name, after_deletion)
    answer = remote.send("POST", f"workspaces/{locked}/{path}", data)
    assert (answer.status_code, error_of(answer)) == (404, "STATE_NOT_FOUND")
    assert not State.objects.workspaces().exists()
    assert not State.objects.filter(lock_id__isnull=False).exists()


@pytest.mark.parametrize("workspace", ["workspace_id", "created_again"])
def test_a_version_that_is_pushed_during_a_deletion_is_deleted_too(
    remote: RemoteClient,
    workspace: str,
    request: pytest.FixtureRequest,
    after_the_first_look: Interrupt,
) -> None:
    id_ = request.getfixturevalue(workspace)

    def push() -> None:
        assert remote.client.generic("POST", BACKEND, document(7)).status_code == 200

    after_the_first_look(push)

    assert remote.send("DELETE", f"workspaces/{id_}").status_code == 204
    state = State.objects.get()
    assert (state.workspace, state.serial) == (None, 7)
    assert state.deleted_at is not None
