"""docs/how-to/opentofu.md: OpenTofu's requests, from its source, and the answers that it needs."""

import json
import re
import subprocess
import uuid
from pathlib import Path

import pytest

from tests.docs.conftest import needs_terraform, readers
from tests.docs.walk import ROOT, Walk
from tests.e2e.backend import Backend, document, lock_info
from tests.e2e.terraform import BINARY
from tests.e2e.wire import Wire
from tests.support.server import LiveServer

PAGE = ROOT / "docs/how-to/opentofu.md"
ENCRYPTED = json.dumps(
    {
        "serial": 2,
        "lineage": "lineage",
        "meta": {"key_provider.pbkdf2.mine": "eyJzYWx0IjoiIn0="},
        "encrypted_data": "c2VhbGVk",
        "encryption_version": "v0",
    }
).encode()


@pytest.fixture(scope="module")
def tokens(service: LiveServer) -> list[str]:
    return service.tokens("state:read,state:write,state:secrets", "state:write,state:admin")


@pytest.fixture
def backend(service: LiveServer, tokens: list[str]) -> Backend:
    """A state whose client sends a bearer token, as on the page."""
    return Backend(service, tokens[0])


def test_an_apply(backend: Backend) -> None:
    lock_id = str(uuid.uuid4())

    assert backend.lock(lock_id, Version="1.10.6").status == 200
    assert backend.get().status == 404
    assert backend.push(document(), lock_id).status == 200
    assert backend.unlock(lock_id).status == 200
    assert backend.get().body == document()


def test_whoever_is_refused_learns_of_the_holder(backend: Backend) -> None:
    held = str(uuid.uuid4())
    assert backend.lock(held, Who="ada@laptop").status == 200

    refused = backend.lock(str(uuid.uuid4()))

    assert backend.unlock(held).status == 200
    assert refused.status == 423
    assert refused.json()["Who"].startswith("ada@laptop, token ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", refused.json()["Created"])


def test_force_unlock_since_1_10_names_the_lock(backend: Backend) -> None:
    lock_id = str(uuid.uuid4())
    assert backend.lock(lock_id).status == 200

    other = json.dumps(lock_info(str(uuid.uuid4()))).encode()
    assert backend.send("UNLOCK", other).status == 409
    assert backend.send("UNLOCK", json.dumps({"ID": lock_id}).encode()).status == 200
    assert backend.holder() is None


def test_force_unlock_before_1_10_sends_no_lock_id(backend: Backend, tokens: list[str]) -> None:
    admin = backend.with_token(tokens[1])
    assert backend.lock(str(uuid.uuid4())).status == 200
    answers = []

    for client in (backend, admin):
        with Wire(client) as wire:
            wire.head("UNLOCK", Transfer_Encoding="chunked")
            wire.chunks([])
            answers.append(wire.answer().status)

    assert answers == [403, 200]
    assert backend.holder() is None


def test_encrypted_document_is_stored(backend: Backend, service: LiveServer) -> None:
    assert backend.push(document()).status == 200
    assert backend.push(ENCRYPTED).status == 200
    assert backend.get().body == ENCRYPTED

    listed = service.request("GET", "/api/v1/states?page_size=100", token=backend.token).json()
    (state,) = [
        state for state in listed["states"] if state["component_id"] == str(backend.component_id)
    ]
    assert (state["serial"], state["lineage"]) == (2, "lineage")
    path = f"/api/v1/states/{state['id']}"
    for method, part in (
        ("GET", "versions/2/diff"),
        ("GET", "outputs"),
        ("GET", "resources"),
        ("POST", "versions/2:restore"),
    ):
        refused = service.request(method, f"{path}/{part}", b"", token=backend.token)
        assert (refused.status, refused.reason) == (400, "STATE_ENCRYPTED")
    exact = service.request("GET", f"{path}/versions/2/document", token=backend.token)
    assert exact.body == ENCRYPTED


@needs_terraform
def test_the_setting_is_well_formed(place: Path) -> None:
    """Terraform reads the same language, though it does not know the setting."""
    assert Walk(place, readers(place, {})).through(PAGE)
    assert BINARY is not None
    formatted = subprocess.run(
        [BINARY, "fmt", "-"],
        input=(place / "bearer.tfbackend").read_bytes(),
        capture_output=True,
        check=True,
    )
    assert formatted.stdout == (place / "bearer.tfbackend").read_bytes()
