"""go-tfe's expectations of state versions (its TestStateVersions…), and hostile uploads."""

from __future__ import annotations

import datetime as dt
import json
import tracemalloc
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import override_settings
from django.utils import timezone

from apikeys.models import AccessToken
from states.models import State, StateVersion
from tests.conftest import ClientWith
from tests.e2e.backend import document
from tests.states.remote.conftest import BACKEND, FIRST, SECOND, RemoteClient, error_of
from tests.support.figures import Since

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.states.remote.urls")]


def test_an_uploaded_version_is_finalized_and_read_by_both_backends(
    remote: RemoteClient, locked: str
) -> None:
    announced = remote.announce(locked, FIRST)
    assert announced.json()["data"]["attributes"]["status"] == "pending"
    assert announced["X-Terraform-Snapshot-Interval"] == "20"
    assert StateVersion.objects.count() == 0
    assert remote.upload(announced, FIRST).status_code == 200
    assert remote.upload(announced, b"{}", "hosted-json-state-upload-url").status_code == 200

    read = remote.send("GET", f"state-versions/{announced.json()['data']['id']}")
    attributes = read.json()["data"]["attributes"]
    assert attributes["status"] == "finalized"
    assert attributes["serial"] == 1
    assert attributes["created-at"].endswith("Z")
    assert remote.pulled(locked) == FIRST
    assert remote.client.get(BACKEND).content == FIRST


def test_intermediate_versions_are_requested_before_the_first_version(
    remote: RemoteClient, locked: str
) -> None:
    """Terraform decides by the last response, which is a 404 during its first apply."""
    current = remote.send("GET", f"workspaces/{locked}/current-state-version")

    assert (current.status_code, current["X-Terraform-Snapshot-Interval"]) == (404, "20")


def test_a_version_of_the_http_backend_is_read(remote: RemoteClient) -> None:
    assert remote.client.generic("POST", BACKEND, FIRST).status_code == 200
    found = remote.send("GET", "organizations/default/workspaces/network-prod").json()["data"]
    assert remote.pulled(found["id"]) == FIRST


def test_a_version_in_one_step(remote: RemoteClient, locked: str) -> None:
    counted = Since()
    answer = remote.announce(locked, FIRST, whole=True, **{"json-state": "e30="})
    assert answer.status_code == 201
    created = answer.json()["data"]
    assert created["attributes"]["serial"] == 1
    assert remote.send("GET", f"state-versions/{created['id']}").json()["data"] == created
    assert remote.pulled(locked) == FIRST
    assert counted("infra_state_pushed_bytes_total") == len(FIRST)


def test_a_repeated_upload_adds_no_version(remote: RemoteClient, locked: str) -> None:
    announced = remote.announce(locked, FIRST)
    for _ in range(2):
        assert remote.upload(announced, FIRST).status_code == 200
    assert StateVersion.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [(document(1, x=1), "SERIAL_CONFLICT"), (document(3, "other"), "LINEAGE_MISMATCH")],
)
def test_an_older_serial_or_another_lineage_needs_force(
    remote: RemoteClient, locked: str, body: bytes, code: str
) -> None:
    remote.push(locked, SECOND)
    refused = remote.upload(remote.announce(locked, body), body)
    assert (refused.status_code, error_of(refused)) == (409, code)

    remote.push(locked, body, force=True)
    assert remote.pulled(locked) == body


def test_the_list_begins_with_the_newest(remote: RemoteClient, locked: str) -> None:
    ids = [remote.push(locked, FIRST), remote.push(locked, SECOND)]
    query = "filter[organization][name]=default&filter[workspace][name]=network-prod"
    page = remote.send("GET", f"state-versions?{query}").json()
    assert [version["id"] for version in page["data"]] == ids[::-1]
    pagination = page["meta"]["pagination"]
    assert (pagination["current-page"], pagination["total-count"]) == (1, 2)

    far = remote.send("GET", f"state-versions?{query}&page[number]=999&page[size]=100").json()
    assert far["data"] == []
    assert far["meta"]["pagination"]["current-page"] == 999
    assert far["meta"]["pagination"]["total-count"] == 2
    assert error_of(remote.send("GET", "state-versions")) == "INVALID_FIELDS"


def test_a_version_needs_the_lock_of_the_token(
    remote: RemoteClient, workspace_id: str, client_with: ClientWith
) -> None:
    refused = remote.announce(workspace_id, FIRST)
    assert (refused.status_code, error_of(refused)) == (409, "WORKSPACE_LOCK_REQUIRED")

    remote.act(workspace_id, "lock")
    other = RemoteClient(client_with("state:read", "state:write"))
    assert error_of(other.announce(workspace_id, FIRST)) == "STATE_LOCKED"


def test_a_force_released_lock_does_not_write(remote: RemoteClient, locked: str) -> None:
    announced = remote.announce(locked, FIRST)
    remote.act(locked, "force-unlock")
    refused = remote.upload(announced, FIRST)
    assert (refused.status_code, error_of(refused)) == (409, "LOCK_NOT_HELD")
    assert error_of(remote.announce(locked, FIRST)) == "WORKSPACE_LOCK_REQUIRED"


def test_an_upload_url_accepts_only_its_document(remote: RemoteClient, locked: str) -> None:
    announced = remote.announce(locked, FIRST)
    assert error_of(remote.upload(announced, SECOND)) == "CONTENT_MD5_MISMATCH"
    wrong = remote.announce(locked, SECOND, serial=7)
    assert error_of(remote.upload(wrong, SECOND)) == "INVALID_ATTRIBUTE"
    assert StateVersion.objects.count() == 0


def test_an_upload_url_ends_with_its_token(remote: RemoteClient, locked: str) -> None:
    announced = remote.announce(locked, FIRST)
    AccessToken.objects.update(revoked_at="2026-01-01T00:00:00Z")
    refused = remote.upload(announced, FIRST)
    assert (refused.status_code, error_of(refused)) == (401, "CREDENTIALS_INVALID")


@pytest.mark.parametrize("capability", ["", "x", "a.b", "%00.%00", "A" * 5000])
def test_an_invalid_capability_is_refused(remote: RemoteClient, capability: str) -> None:
    for route in ("upload", "json-upload"):
        answer = remote.send("PUT", f"state-versions/{route}?capability={capability}")
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"].startswith("Bearer ")
        assert error_of(answer).startswith("CREDENTIALS_")


def test_a_changed_capability_is_refused(remote: RemoteClient, locked: str) -> None:
    announced: Any = remote.announce(locked, FIRST)
    content = announced.content.decode().replace("capability=", "capability=0")
    announced.json = lambda: json.loads(content)
    assert error_of(remote.upload(announced, FIRST)) == "CREDENTIALS_INVALID"


@override_settings(STATE_MAX_BYTES=1000)
def test_large_documents_are_refused(remote: RemoteClient, locked: str) -> None:
    large = document(1, filler="x" * 1000)
    assert error_of(remote.announce(locked, large, whole=True)) == "REQUEST_TOO_LARGE"
    assert error_of(remote.upload(remote.announce(locked, large), large)) == "REQUEST_TOO_LARGE"
    huge = document(1, filler="x" * 4000)
    assert error_of(remote.announce(locked, huge, whole=True)) == "REQUEST_TOO_LARGE"


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({}, "INVALID_ATTRIBUTE"),
        ({"md5": "x", "serial": 1}, "INVALID_ATTRIBUTE"),
        ({"md5": "0" * 32, "serial": "1"}, "INVALID_ATTRIBUTE"),
        ({"md5": "0" * 32, "serial": 1, "state": "=="}, "INVALID_ATTRIBUTE"),
        ({"md5": "0" * 32, "serial": 1, "state": "e30="}, "CONTENT_MD5_MISMATCH"),
        ({"md5": "0" * 32, "serial": 1, "state": "/w=="}, "INVALID_DOCUMENT"),
    ],
)
def test_bad_versions_are_refused(
    remote: RemoteClient, locked: str, attributes: dict[str, Any], code: str
) -> None:
    data = {"type": "state-versions", "attributes": attributes}
    assert error_of(remote.send("POST", f"workspaces/{locked}/state-versions", data)) == code


@pytest.mark.parametrize(
    "attributes",
    [
        {"serial": -1},
        {"serial": 2**63},
        {"serial": 2**64},
        {"serial": 10**400},
        {"lineage": "x" * 256},
    ],
)
def test_limits_of_a_document_hold_for_its_announcement(
    remote: RemoteClient, locked: str, attributes: dict[str, Any]
) -> None:
    assert error_of(remote.announce(locked, FIRST, **attributes)) == "INVALID_ATTRIBUTE"


def test_the_longest_lineage_is_uploaded(remote: RemoteClient, locked: str) -> None:
    body = document(2**63 - 1, lineage="\U0001f600" * 255)
    remote.push(locked, body)
    assert remote.pulled(locked) == body


def test_a_token_bound_elsewhere_finds_nothing(
    remote: RemoteClient, locked: str, client_with: ClientWith
) -> None:
    version_id = remote.push(locked, FIRST)
    announced = remote.announce(locked, SECOND)
    other = str(remote.client.token.pk)
    bound = {"bound_component_ids": ["00000000-0000-4000-8000-000000000001"]}
    scopes = ("state:read", "state:write", "state:admin", "state:secrets")
    stranger = RemoteClient(client_with(*scopes, **bound))
    for method, path in (
        ("GET", f"workspaces/{locked}"),
        ("POST", f"workspaces/{locked}/actions/lock"),
        ("POST", f"workspaces/{locked}/actions/force-unlock"),
        ("GET", f"workspaces/{locked}/current-state-version"),
        ("GET", f"workspaces/{locked}/current-state-version-outputs"),
        ("GET", f"state-versions/{version_id}"),
        ("GET", f"state-versions/{version_id}/download"),
        ("GET", f"state-versions/{version_id}/outputs"),
        ("DELETE", f"workspaces/{locked}"),
    ):
        assert stranger.send(method, path).status_code == 404, path
    assert stranger.create("new-prod").status_code == 404
    listed = stranger.send("GET", "organizations/default/workspaces").json()
    assert listed["data"] == []
    # A token that is bound elsewhere after the announcement loses the upload, too.
    AccessToken.objects.filter(pk=other).update(**bound)
    assert remote.upload(announced, SECOND).status_code == 404
    assert State.objects.get().serial == 1


def test_former_versions_need_the_scope_for_secrets(
    remote: RemoteClient, locked: str, client_with: ClientWith
) -> None:
    first, second = remote.push(locked, FIRST), remote.push(locked, SECOND)
    State.objects.update(updated_at=timezone.now() - dt.timedelta(minutes=1))
    assert remote.send("GET", f"state-versions/{second}/download").content == SECOND
    assert error_of(remote.send("GET", f"state-versions/{first}/download")) == "SCOPE_INSUFFICIENT"
    privileged = RemoteClient(client_with("state:read", "state:secrets"))
    assert privileged.send("GET", f"state-versions/{first}/download").content == FIRST


def test_version_that_is_replaced_before_its_download(remote: RemoteClient, locked: str) -> None:
    """A long apply stores a version every 20 seconds, while other clients read the state."""
    first, second = remote.push(locked, FIRST), remote.push(locked, SECOND)
    current = remote.send("GET", f"workspaces/{locked}/current-state-version").json()["data"]
    remote.push(locked, document(3))

    url = urlsplit(current["attributes"]["hosted-state-download-url"])
    assert (current["id"], remote.client.get(url.path).content) == (second, SECOND)
    assert error_of(remote.send("GET", f"state-versions/{first}/download")) == "SCOPE_INSUFFICIENT"


OUTPUTS = {
    "region": {"value": "eu-central-1", "type": "string"},
    "zones": {"value": ["a", "b"], "type": ["list", "string"]},
    "password": {"value": "correct-horse-battery", "type": "string", "sensitive": True},
}


def test_outputs_as_the_provider_reads_them(
    remote: RemoteClient, locked: str, client_with: ClientWith
) -> None:
    version_id = remote.push(locked, document(1, outputs=OUTPUTS))
    reader = RemoteClient(client_with("state:outputs"))
    assert reader.send("GET", "organizations/default/workspaces/network-prod").status_code == 200
    path = f"workspaces/{locked}/current-state-version-outputs"
    found = {item["attributes"]["name"]: item for item in reader.send("GET", path).json()["data"]}
    assert set(found) == {"region", "zones"}
    assert found["zones"]["attributes"] == {
        "name": "zones",
        "sensitive": False,
        "type": "array",
        "detailed-type": ["list", "string"],
        "value": ["a", "b"],
    }

    # The data source `tfe_outputs` reads the workspace with its outputs, and sensitive ones by id.
    by_name = "organizations/default/workspaces/network-prod?include=outputs"
    answer = reader.send("GET", by_name).json()
    related = answer["data"]["relationships"]["outputs"]["data"]
    assert [(item["type"], item["id"]) for item in answer["included"]] == [
        ("workspace-outputs", one["id"]) for one in related
    ]
    zones = next(item for item in answer["included"] if item["attributes"]["name"] == "zones")
    assert (zones["attributes"]["output-type"], zones["attributes"]["value"]) == (
        "array",
        ["a", "b"],
    )

    privileged = RemoteClient(client_with("state:outputs", "state:secrets"))
    names = {
        item["attributes"]["name"]: item["id"]
        for item in privileged.send("GET", by_name).json()["included"]
    }
    read = privileged.send("GET", f"state-version-outputs/{names['password']}").json()["data"]
    assert read["attributes"]["value"] == "correct-horse-battery"
    writer = RemoteClient(client_with("state:write"))
    assert error_of(writer.send("GET", by_name)) == "SCOPE_INSUFFICIENT"
    remote.created("empty-prod")
    assert reader.send("GET", by_name.replace("network", "empty")).json()["included"] == []
    listed = privileged.send("GET", f"state-versions/{version_id}/outputs").json()["data"]
    (secret,) = [item for item in listed if item["attributes"]["sensitive"]]
    assert secret["attributes"]["value"] is None
    one = privileged.send("GET", f"state-version-outputs/{secret['id']}").json()["data"]
    assert one["attributes"]["value"] == "correct-horse-battery"
    assert reader.send("GET", f"state-version-outputs/{secret['id']}").status_code == 404
    assert reader.send("GET", "state-version-outputs/wsout-1").status_code == 404
    assert error_of(reader.send("GET", path.removesuffix("-outputs"))) == "SCOPE_INSUFFICIENT"


@pytest.mark.parametrize(
    "number",
    [b"1e400", b"0.12345678901234567890123", b"1" + b"0" * 4000, b"1e99999999999999999999"],
)
@pytest.mark.parametrize("scope", ["state:read", "state:secrets"])
def test_outputs_keep_their_digits(
    remote: RemoteClient, locked: str, client_with: ClientWith, number: bytes, scope: str
) -> None:
    body = document(1, outputs={"size": {"value": "PLACE", "type": "number"}})
    remote.push(locked, body.replace(b'"PLACE"', number))
    reader = RemoteClient(client_with("state:read", scope))

    answer = reader.send("GET", f"workspaces/{locked}/current-state-version-outputs")

    if scope == "state:read" and b"e9999" in number:
        # A search for secrets in it needs the number.
        assert error_of(answer) == "STATE_FORMAT_UNSUPPORTED"
    else:
        assert b'"value":' + number in answer.content


def test_large_outputs_stay_bytes(
    remote: RemoteClient, locked: str, client_with: ClientWith
) -> None:
    many = [[]] * 500_000
    body = document(1, outputs={"many": {"value": many, "type": "dynamic"}})
    remote.push(locked, body)
    privileged = RemoteClient(client_with("state:read", "state:secrets"))

    tracemalloc.start()
    answer = privileged.send("GET", f"workspaces/{locked}/current-state-version-outputs")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert answer.status_code == 200
    assert peak < 8 * len(body)
