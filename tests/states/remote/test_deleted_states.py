"""A workspace that a client creates for a deleted state."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from apikeys.actors import Actor
from infra_service.change_history.models import Change
from states.keeping import pruning
from states.models import State, StateVersion
from tests.states.indexed import index, with_things
from tests.states.remote.conftest import RemoteClient

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.both,
    pytest.mark.urls("tests.states.remote.urls"),
]
PATH = "/api/v1/state/at/network/prod"
WITH_RESOURCE = with_things(1, a="i-1")
WORKSPACE = "organizations/default/workspaces/network-prod"


@pytest.fixture
def workspace(remote: RemoteClient) -> str:
    """The id of a workspace for a deleted state with a resource."""
    assert remote.client.generic("POST", PATH, WITH_RESOURCE).status_code == 200
    assert [one.problem for one in index()] == [""]
    assert remote.client.generic("DELETE", PATH).status_code == 200
    return remote.created("network-prod", team="core")


def tags_of(remote: RemoteClient) -> Any:
    return remote.send("GET", WORKSPACE).json()["data"]["attributes"]["tag-names"]


def test_workspace_is_deleted(remote: RemoteClient, workspace: str) -> None:
    """The history of the deleted state stays until its retention ends."""
    deleted_at = State.objects.get().deleted_at
    assert remote.send("DELETE", f"workspaces/{workspace}").status_code == 204
    assert remote.send("GET", WORKSPACE).status_code == 404
    assert remote.send("DELETE", f"workspaces/{workspace}").status_code == 404
    state = State.objects.get()
    assert state.deleted_at == deleted_at
    assert remote.client.generic("POST", f"/api/v1/states/{state.pk}:undelete").status_code == 200
    assert remote.client.get(PATH).status_code == 200


def test_workspace_outlives_the_history(remote: RemoteClient, workspace: str) -> None:
    State.objects.update(deleted_at=timezone.now() - dt.timedelta(days=3650))
    purged = list(pruning.prune(actor=Actor(name="test")))
    assert [one.versions for one in purged if one.versions] == [1]
    assert not StateVersion.objects.exists()
    assert tags_of(remote) == ["team"]

    assert remote.act(workspace, "lock").status_code == 200
    remote.push(workspace, WITH_RESOURCE)
    assert remote.act(workspace, "unlock").status_code == 200
    assert remote.client.get(PATH).content == WITH_RESOURCE
    assert [one.problem for one in index()] == [""]
    assert Change.objects.filter(version__number=1).exists()  # the history starts again
