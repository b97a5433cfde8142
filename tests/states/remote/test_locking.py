"""go-tfe's expectations of locks (its TestWorkspacesLock, Unlock and ForceUnlock), and more."""

from __future__ import annotations

import datetime as dt
import json
import uuid

import pytest
from django.utils import timezone

from apikeys.models import AuditEvent
from states.lockinfo import LockInfo
from states.models import State
from tests.conftest import ClientWith
from tests.e2e.backend import document, lock_info
from tests.states.remote.conftest import BACKEND, FIRST, MEDIA_TYPE, RemoteClient, error_of

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.states.remote.urls")]


def test_a_lock_names_its_user(remote: RemoteClient, workspace_id: str) -> None:
    data = {"type": "workspaces", "attributes": {"reason": "Locked by Terraform"}}
    answer = remote.send("POST", f"workspaces/{workspace_id}/actions/lock", data)

    assert answer.status_code == 200
    assert answer.json()["data"]["attributes"]["locked"] is True
    holder = answer.json()["data"]["relationships"]["locked-by"]["data"]
    assert holder == {"type": "users", "id": "operator"}
    state = State.objects.get()
    assert state.lock_info["Info"] == "Locked by Terraform"
    assert state.lock_info["Path"] == "default/network-prod"
    assert state.lock_taken_by["door"] == "remote"


@pytest.mark.parametrize(("version", "stored"), [("1.11.4-rc1", "1.11.4-rc1"), ("1 11", "")])
def test_a_lock_shows_its_reason_and_the_version_of_the_client(
    remote: RemoteClient, workspace_id: str, version: str, stored: str
) -> None:
    body = json.dumps({"data": {"type": "workspaces", "attributes": {"reason": "x" * 1001}}})
    path = f"/api/v2/workspaces/{workspace_id}/actions/lock"
    before = timezone.now()
    answer = remote.client.generic("POST", path, body, MEDIA_TYPE, HTTP_TERRAFORM_VERSION=version)

    assert answer.status_code == 200
    lock = LockInfo(**State.objects.get().lock_info)
    assert (lock.Info, lock.Version) == ("x" * 1000, stored)
    assert lock.Who == "operator"
    assert lock.Created.endswith("Z")
    assert before <= dt.datetime.fromisoformat(lock.Created) <= timezone.now()


def test_a_locked_workspace_is_not_locked_again(remote: RemoteClient, locked: str) -> None:
    answer = remote.act(locked, "lock")
    assert (answer.status_code, error_of(answer)) == (409, "STATE_LOCKED")


def test_unlock_and_unlock_again(remote: RemoteClient, locked: str) -> None:
    answer = remote.act(locked, "unlock")
    assert answer.status_code == 200
    assert answer.json()["data"]["attributes"]["locked"] is False

    again = remote.act(locked, "unlock")
    assert (again.status_code, error_of(again)) == (409, "WORKSPACE_NOT_LOCKED")


def test_force_unlock_and_force_unlock_again(remote: RemoteClient, locked: str) -> None:
    answer = remote.act(locked, "force-unlock")
    assert answer.status_code == 200
    assert answer.json()["data"]["attributes"]["locked"] is False
    assert AuditEvent.objects.get(action="state.force_unlock").details["reason"]

    again = remote.act(locked, "force-unlock")
    assert (again.status_code, error_of(again)) == (409, "WORKSPACE_NOT_LOCKED")


def test_another_token_of_the_same_user_cannot_unlock(
    remote: RemoteClient, locked: str, client_with: ClientWith
) -> None:
    other = RemoteClient(client_with("state:read", "state:write"))
    answer = other.act(locked, "unlock")

    assert (answer.status_code, error_of(answer)) == (409, "WORKSPACE_LOCKED_BY_OTHER")
    assert "is locked by User" in answer.json()["errors"][0]["detail"]  # as go-tfe recognizes it
    assert error_of(other.act(locked, "force-unlock")) == "SCOPE_INSUFFICIENT"
    assert State.objects.get().lock_id is not None


def test_a_lock_by_the_http_backend_is_respected(remote: RemoteClient, workspace_id: str) -> None:
    info = lock_info(uuid.uuid4())
    assert remote.client.generic("LOCK", BACKEND, json.dumps(info)).status_code == 200

    assert error_of(remote.act(workspace_id, "lock")) == "STATE_LOCKED"
    assert error_of(remote.act(workspace_id, "unlock")) == "WORKSPACE_LOCKED_BY_OTHER"
    assert error_of(remote.announce(workspace_id, FIRST)) == "STATE_LOCKED"
    assert remote.act(workspace_id, "force-unlock").status_code == 200


def test_the_http_backend_respects_a_lock_and_lists_its_door(
    remote: RemoteClient, locked: str
) -> None:
    info = lock_info(uuid.uuid4())
    refused = remote.client.generic("LOCK", BACKEND, json.dumps(info))
    assert refused.status_code == 423
    assert refused.json()["Path"] == "default/network-prod"
    assert remote.client.generic("POST", BACKEND, document()).status_code == 423

    (state,) = remote.client.items("/api/v1/states", "states")
    assert state["lock"]["door"] == "remote"


def test_a_workspace_survives_the_unlock_before_its_first_push(
    remote: RemoteClient, locked: str
) -> None:
    remote.act(locked, "unlock")
    assert remote.send("GET", f"workspaces/{locked}").status_code == 200


def test_a_frozen_workspace_is_not_locked(remote: RemoteClient, workspace_id: str) -> None:
    state = State.objects.get()
    freeze = remote.client.send(
        "POST", f"/api/v1/states/{state.pk}:freeze", {"reason": "migration"}
    )
    assert freeze.status_code == 200
    answer = remote.act(workspace_id, "lock")
    assert (answer.status_code, error_of(answer)) == (409, "STATE_FROZEN")
    assert "migration" in answer.json()["errors"][0]["detail"]
