"""Foreign documents do not replace a state by mistake."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apikeys.races import RaceLostError
from states.actions.replacement import check_replacement
from states.document.uploads import Upload
from states.errors import InvalidDocument
from states.models import StateVersion
from tests.conftest import error_reason
from tests.states.conftest import Backend, document
from tests.states.samples import ENCRYPTED
from tests.states.test_import_states import run, stored, write
from tests.support.people import confirm, person, text_of

CASES = Path(__file__).parent / "fixtures" / "cases" / "07-not-a-state"
LIVE = (CASES / "live.tfstate").read_bytes()
#: Foreign documents, with a part of their description.
FOREIGN = {
    (CASES / "error-page.json").read_bytes(): "the error response of a server",
    (CASES / "show-json.json").read_bytes(): "the output of `terraform show -json`",
    (CASES / "lock-info.json").read_bytes(): "the information about a lock",
    b"{}": "`{}`",
    b" { } ": "`{}`",
    b'{"error": {"code": 503}}': "the error response of a server",
    b'{"errors": ["not found"]}': "the error response of a server",
    b'{"format_version": "1.2", "planned_values": {}}': "a plan as JSON",
    b'{"data": {"id": "sv-1"}}': "the response of another API",
    b'{"resources": [], "outputs": {}}': "a state whose `version` is missing",
    b'{"region": "eu-west-1"}': "another JSON object",
    b'{"serial": 99, "x": 1}': "another JSON object",
    b'{"version": "4"}': "another JSON object",
    b'{"version": null, "encrypted_data": null}': "another JSON object",
    b'{"version": [4]}': "another JSON object",
    b'{"version": true}': "another JSON object",
    b'{"version": 3, "backend": {"type": "http"}}': "Terraform's record of its backend",
    b'{"a": {"version": 4}}': "another JSON object",
}


@pytest.fixture
def live(backend: Backend) -> Backend:
    assert backend.push(LIVE).status_code == 200
    return backend


@pytest.mark.parametrize(("foreign", "kind"), FOREIGN.items())
def test_a_state_is_not_replaced(live: Backend, foreign: bytes, kind: str) -> None:
    answer = live.push(foreign)

    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_DOCUMENT")
    message = answer.json()["error"]["message"]
    assert f"looks like {kind}" in message
    assert "?force=true" in message
    assert live.get().content == LIVE
    assert StateVersion.objects.count() == 1


@pytest.mark.parametrize("foreign", [b"{}", b'{"message":"401"}'])
def test_nor_under_its_lock(live: Backend, lock_id: uuid.UUID, foreign: bytes) -> None:
    live.lock(lock_id)

    assert error_reason(live.push(foreign, f"?ID={lock_id}")) == "INVALID_DOCUMENT"
    assert live.push(document(2, None), f"?ID={lock_id}").status_code == 200


@pytest.mark.parametrize("foreign", FOREIGN)
def test_force_takes_any_object(live: Backend, client_with: Any, foreign: bytes) -> None:
    admin = live.as_client(client_with("state:read", "state:write", "state:admin"))

    assert error_reason(admin.push(foreign)) == "INVALID_DOCUMENT"
    assert admin.push(foreign, "?force=true").status_code == 200
    assert admin.get().content == foreign
    # A state or another object may replace a foreign document.
    assert live.push(b'{"any": "thing"}').status_code == 200
    assert live.push(document(200, None)).status_code == 200


def test_force_takes_any_object_under_the_lock(live: Backend, client_with: Any) -> None:
    admin = live.as_client(client_with("state:read", "state:write", "state:admin"))
    held = uuid.uuid4()
    admin.lock(held)

    assert admin.push(b"{}", f"?ID={held}&force=true").status_code == 200


@pytest.mark.parametrize("foreign", FOREIGN)
def test_the_first_push_takes_any_object(backend: Backend, foreign: bytes) -> None:
    assert backend.push(foreign).status_code == 200
    assert backend.get().content == foreign


def test_a_deleted_state_is_like_an_empty_address(live: Backend, client_with: Any) -> None:
    admin = live.as_client(client_with("state:read", "state:write", "state:admin"))
    admin.delete()

    assert live.push(b"{}").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b'{"version": 3, "serial": 7, "modules": []}',
        b'{"version": 5, "serial": 7}',
        b'{"version": -1, "serial": 7}',
        b'{"version": 4.0, "serial": 7}',
        ENCRYPTED.replace(b'"serial":1,"lineage":"x"', b'"serial":7'),
    ],
)
def test_a_state_of_any_format_replaces_a_state(live: Backend, body: bytes) -> None:
    assert live.push(body).status_code == 200
    assert error_reason(live.push(b"{}")) == "INVALID_DOCUMENT"


def test_a_current_document_that_cannot_be_read_is_a_state(live: Backend) -> None:
    StateVersion.objects.update(encryption_key="0" * 16)

    assert error_reason(live.push(b"{}")) == "INVALID_DOCUMENT"
    assert live.push(document(2, None)).status_code == 200


def test_a_version_that_another_push_has_replaced_is_not_judged(live: Backend) -> None:
    """The push starts again, and is judged by the version that is current."""
    state = live.record
    state.current_version_id = uuid.uuid4()

    with pytest.raises(RaceLostError):
        check_replacement(state, Upload.of(b"{}"))

    with pytest.raises(InvalidDocument):
        check_replacement(live.record, Upload.of(b"{}"))


def test_an_ordinary_push_reads_no_document(live: Backend) -> None:
    with CaptureQueriesContext(
        connection,
    ) as ordinary:
        assert live.push(document(2, None)).status_code == 200
    assert not [q for q in ordinary if '"document"' in q["sql"] and q["sql"].startswith("SELECT")]


def test_a_restore_is_a_replacement(live: Backend, client_with: Any) -> None:
    admin = live.as_client(client_with("state:read", "state:write", "state:admin"))
    admin.push(b'{"any": "thing"}', "?force=true")
    admin.push(document(9, None))

    answer = admin.call("/versions/2:restore")

    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_DOCUMENT")
    assert admin.call("/versions/1:restore").status_code == 200
    page = f"/admin/states/state/{live.record.pk}/restore-version/"
    refused = confirm(person("operator"), page, {"number": 2, "reason": "x"}, follow=True)
    assert "does not replace a state" in text_of(refused)
    # A foreign document may be replaced by any restored version.
    admin.push(b"{}", "?force=true")
    assert admin.call("/versions/2:restore").status_code == 200


@pytest.mark.django_db
def test_an_import_is_a_replacement(tmp_path: Path) -> None:
    file = tmp_path / "prod/shop/terraform.tfstate"
    write(file, document(1))
    assert run(tmp_path).results == {"prod/shop/terraform.tfstate": "imported"}
    write(file, b'{"message": "401 Unauthorized"}')

    done = run(tmp_path)

    assert done.results == {"prod/shop/terraform.tfstate": "failed"}
    assert "the error response of a server" in done.reasons["prod/shop/terraform.tfstate"]
    assert stored("shop/prod").version_number == 1
    write(file, document(2))
    assert run(tmp_path).results == {"prod/shop/terraform.tfstate": "imported"}


def test_lock_with_null_members_is_recognized(backend: Backend) -> None:
    body = (CASES.parent / "10-lock-info-with-nulls.json").read_bytes()

    answer = backend.send("LOCK", body)

    assert answer.status_code == 200
    holder = answer.json()
    assert holder == {
        "ID": "7e57c0de-0000-4000-8000-0000000000ab", "Operation": "", "Info": "", "Who": "ci",
        "Version": "", "Created": holder["Created"], "Path": "",
    }  # fmt: skip
    assert holder["Created"]
    assert backend.send("LOCK", body).json() == holder
    assert backend.send("UNLOCK", body).status_code == 200


@pytest.mark.parametrize("body", ['{"ID": null}', '{"ID": 1}', '{"ID": ""}', "{}", "null", "[]"])
def test_a_lock_without_an_id(backend: Backend, body: str) -> None:
    answer = backend.send("LOCK", body)

    assert (answer.status_code, error_reason(answer)) == (400, "INVALID_LOCK_INFO")


def test_a_member_that_is_no_text_is_refused(backend: Backend) -> None:
    body = json.dumps({"ID": str(uuid.uuid4()), "Who": 1})

    assert error_reason(backend.send("LOCK", body)) == "INVALID_LOCK_INFO"
