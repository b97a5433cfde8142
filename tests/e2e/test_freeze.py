"""Frozen states: races over HTTP, and the messages of the real terraform."""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.backend import Backend, content_md5, document, lock_info
from tests.e2e.conftest import MakeTerraform
from tests.e2e.database import problems, versions_of
from tests.e2e.history import History
from tests.e2e.together import Call, at_once
from tests.support.server import LiveServer

FREEZE = {"reason": "database upgrade, ask ada", "expected_until": "2999-01-31T12:00:00Z"}
SHOWN = r"frozen by \S+ since \d{4}-\d\d-\d\d \d\d:\d\d UTC: database upgrade, ask ada"
ONE = 'resource "terraform_data" "a" { input = "first" }'
JSON = {"Content-Type": "application/json"}


@pytest.mark.both
def test_20_requests_at_once(live: LiveServer, backend: Backend) -> None:
    """Each lock or push precedes the freeze or is refused, and the freeze always succeeds."""
    assert backend.push(document(1)).status == 200
    history, auditor = History(backend), live.token("audit:read")
    path, body = f"{history.root}:freeze", json.dumps(FREEZE).encode()
    freeze = Call("POST", body, headers=JSON, path=path)
    for serial in range(2, 8):
        locks = [Call("LOCK", json.dumps(lock_info(uuid.uuid4())).encode()) for _ in range(9)]
        pushed = document(serial)
        pushes = [Call("POST", pushed, headers={**JSON, "Content-MD5": content_md5(pushed)})] * 10

        frozen, *others = at_once(backend, [freeze, *locks, *pushes])

        assert frozen.status == 200
        locked = Counter(answer.status for answer in others[:9])
        assert locked in ({423: 9}, {200: 1, 423: 8})
        assert {answer.status for answer in others[9:]} <= {200, 423}
        is_stored = backend.get().body == pushed
        assert is_stored == any(answer.status == 200 for answer in others[9:])
        state = history.get().json()["state"]
        assert state["frozen"]["reason"] == FREEZE["reason"]
        assert ("lock" in state) == (locked[200] == 1)
        # No push follows the freeze.
        event = newest_freeze(live, auditor, history)
        assert event["details"]["version"] == history.versions()[0]["number"]
        if "lock" in state:  # its holder may finish
            assert backend.unlock(state["lock"]["lock_id"]).status == 200
        assert backend.lock(str(uuid.uuid4())).reason == "STATE_FROZEN"
        assert history.call(":unfreeze").status == 200
    assert problems(backend) == []


def newest_freeze(live: LiveServer, auditor: str, history: History) -> Any:
    state_id = history.root.rpartition("/")[2]
    expression = quote(f"field['resource_id'] = '{state_id}' AND field['action'] = 'state.frozen'")
    path = f"/api/v1/audit-events?page_size=1&filter={expression}"
    (event,) = live.request("GET", path, token=auditor).json()["audit_events"]
    return event


@pytest.mark.terraform
def test_terraform_names_the_operator_and_the_reason(
    terraform: MakeTerraform, backend: Backend
) -> None:
    tf = terraform(ONE)
    tf.apply()
    history = History(backend)
    assert history.call(":freeze", **FREEZE).status == 200
    before = versions_of(backend)

    refused = tf.apply(code=1).out

    assert "Error acquiring the state lock" in refused
    assert re.search(f"HTTP remote state already locked: ID={SHOWN}", refused)
    assert "(expected until 2999-01-31 12:00 UTC)" in refused
    # A plan reads.
    tf.run("plan", "-lock=false", "-detailed-exitcode", code=0)
    # Without a lock the state is not written either: Terraform saves it in errored.tfstate.
    tf.write(ONE.replace("first", "second"))
    failed = tf.apply("-lock=false", code=1).out
    assert "Failed to save state" in failed
    assert (tf.directory / "errored.tfstate").exists()
    # A force-unlock releases a lock, not a freeze.
    shown = backend.lock(str(uuid.uuid4())).json()["ID"]
    assert "423" in tf.run("force-unlock", "-force", shown, code=1).out
    assert versions_of(backend) == before

    assert history.call(":unfreeze").status == 200
    tf.run("state", "push", "errored.tfstate")
    tf.run("plan", "-detailed-exitcode", code=0)
