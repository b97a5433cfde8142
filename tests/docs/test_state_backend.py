"""docs/reference/state-backend.md and requests-and-lists.md match the code."""

import json
import re
import subprocess
from pathlib import Path

import msgspec
from django.conf import settings

from infra_service.lib.api import pagination
from states import lockinfo
from states.api.backend import StateBackendView, StateLockView
from states.document import sealing
from states.models import MAX_SERIAL
from tests.docs.conftest import readers
from tests.docs.test_references import reference
from tests.e2e.backend import Backend, document
from tests.support.server import LiveServer

PAGE = reference("state-backend")
LISTS = reference("requests-and-lists")


def rows() -> dict[str, str]:
    """Return the scope of each request of the first table."""
    table = re.findall(
        r"^\| ((?:`[^`]+`(?:, )?)+) \| (`\S+`) \|", PAGE.split("## Answers")[0], re.MULTILINE
    )
    return {name: scope for names, scope in table for name in re.findall(r"`([^`]+)`", names)}


def test_requests_need_the_documented_scopes() -> None:
    documented = rows()

    assert {method: documented[method] for method in StateBackendView.required_scopes} == {
        method: f"`{scope.value}`" for method, scope in StateBackendView.required_scopes.items()
    }
    assert {method: documented[f"{method} …/lock"] for method in StateLockView.required_scopes} == {
        method: f"`{scope.value}`" for method, scope in StateLockView.required_scopes.items()
    }


def test_documented_lock_info_matches() -> None:
    names = [field.name for field in msgspec.structs.fields(lockinfo.LockInfo)]
    (example,) = re.findall(r"^```json\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)

    assert list(json.loads(example)) == [*names, "error"]
    assert [name for name in names if f"`{name}`" not in PAGE.split("## LockInfo")[1]] == []


def test_documented_limits_match() -> None:
    page, lists = " ".join(PAGE.split()), " ".join(LISTS.split())
    assert f"over {lockinfo.MAX_BYTES // 1024} KiB" in page
    assert f"0 to {MAX_SERIAL}" in page
    assert f"at most {sealing.MAX_LINEAGE}" in page
    assert f"up to {settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 1024**2} MiB" in lists
    most, default = pagination.MAX_PAGE_SIZE, pagination.DEFAULT_PAGE_SIZE
    assert f"1 to {most} items; 0 or no value selects {default}" in lists
    assert pagination.TOKEN_AGE.days == 3
    assert "for three days" in lists


def test_documented_body_rules_apply(service: LiveServer) -> None:
    token = service.token("state:read,state:write")
    backend = Backend(service, token)

    assert backend.push(sealing.compress(document())).reason == "INVALID_DOCUMENT"
    assert backend.push(b"{}").status == 200
    assert backend.push(b'{"version": 9, "other": true}').status == 200
    assert backend.push(b"[]").reason == "INVALID_DOCUMENT"
    gzipped = backend.send("GET", Accept_Encoding="gzip")
    assert gzipped.headers["Content-Encoding"] == "gzip"
    assert gzipped.headers["Cache-Control"] == "no-store"


def test_documented_page_loop_works(service: LiveServer, place: Path) -> None:
    (script,) = re.findall(r"^```sh\n(.+?)^```", LISTS, re.MULTILINE | re.DOTALL)
    token = service.token("state:read,state:write")
    pushed = [Backend(service, token) for _ in range(3)]
    assert {backend.push(document()).status for backend in pushed} == {200}

    printed = subprocess.run(
        ["bash", "-e", "-u", "-c", script.replace("page_size=100", "page_size=1")],
        env={**readers(place, {}), "BASE_URL": service.url, "TOKEN": token},
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    found = [json.loads(line) for line in printed.splitlines()]
    assert len(found) == len({state["id"] for state in found})
    components = {state["component_id"] for state in found}
    assert {str(backend.component_id) for backend in pushed} <= components
