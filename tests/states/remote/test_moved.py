"""200 workspaces with history from HCP Terraform: only the hostname changes in configurations."""

from __future__ import annotations

import pytest

from states.models import State
from tests.conftest import ClientWith
from tests.e2e.backend import document
from tests.states.moving import tfe
from tests.states.moving.replay import Replay
from tests.states.moving.tfe import TfeService, Workspace
from tests.states.remote.conftest import RemoteClient
from tests.states.test_import_from_services import run

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.states.remote.urls")]

ODD = ("Billing_API-Prod", "solo", "eu__west-1", "data_lake-eu-prod")
NAMES = (*ODD, *(f"team-{number}-prod" for number in range(196)))


def test_each_workspace_keeps_its_name(
    client_with: ClientWith, monkeypatch: pytest.MonkeyPatch, settings: pytest.FixtureRequest
) -> None:
    settings.REMOTE_ORGANIZATION = tfe.ORGANIZATION  # type: ignore[attr-defined]
    histories = {name: [document(n, name) for n in (1, 2)] for name in NAMES}
    tagged = Workspace("tagged-prod", [document(1)], tags={"team:web": "", "é": ""})
    workspaces = [*(Workspace(*each) for each in histories.items()), tagged]
    service = TfeService(workspaces, is_otf=True)
    with Replay(service.answer) as replay:
        monkeypatch.setenv("TFE_ADDRESS", replay.url)
        monkeypatch.setenv("TFE_TOKEN", tfe.TOKEN)
        assert run("tfe://acme", "--history", "all").error == ""

    assert State.objects.count() == len(workspaces)
    remote = RemoteClient(client_with("state:read"))
    for name in (*ODD, NAMES[-1]):
        found = remote.send("GET", f"organizations/acme/workspaces/{name}").json()["data"]
        assert found["attributes"]["name"] == name
        assert remote.pulled(found["id"]) == histories[name][-1]
        query = f"filter[organization][name]=acme&filter[workspace][name]={name}"
        versions = remote.send("GET", f"state-versions?{query}").json()["data"]
        assert [version["attributes"]["serial"] for version in versions] == [2, 1]
    listed = remote.send("GET", "organizations/acme/workspaces?page[size]=100&page[number]=2")
    assert listed.json()["meta"]["pagination"]["total-count"] == len(workspaces)
    by_tag = remote.send("GET", "organizations/acme/workspaces?search[tags]=team:web")
    assert [item["attributes"]["name"] for item in by_tag.json()["data"]] == ["tagged-prod"]
    prefixed = remote.send("GET", "organizations/acme/workspaces?search[name]=Billing_")
    assert [item["attributes"]["name"] for item in prefixed.json()["data"]] == ["Billing_API-Prod"]
