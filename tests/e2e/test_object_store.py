"""Documents in an S3-compatible store with interruptions."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from tests.e2e import object_store
from tests.e2e.backend import Backend, document, incompressible
from tests.e2e.conftest import MakeTerraform
from tests.e2e.history import History
from tests.e2e.object_store import Line
from tests.support.installation import ROOT
from tests.support.server import LiveServer, live_server


@pytest.fixture(scope="module")
def line() -> Iterator[Line]:
    with object_store.running() as port:
        line = Line(port)
        yield line
        line.close()


@pytest.fixture(scope="module")
def served(line: Line) -> Iterator[LiveServer]:
    """A server with documents in the store."""
    with live_server(STATE_STORAGE_URL=line.url, WEB_THREADS="4") as server:
        yield server


@pytest.fixture(scope="module")
def all_token(served: LiveServer) -> str:
    return served.token("state:read", "state:write", "state:admin", "state:secrets")


@pytest.fixture
def backend(served: LiveServer, all_token: str, line: Line) -> Iterator[Backend]:
    yield Backend(served, all_token)
    line.fault = ""


def verified(server: LiveServer) -> int:
    """Check every document, and return their number."""
    found = json.loads(server.run_commands(("verify_states", "--json"))[0])
    assert found["problems"] == []
    checked: int = found["checked"]
    return checked


def test_large_and_small_documents_are_stored(backend: Backend, line: Line) -> None:
    """A document is never uploaded in parts, which would stay in the bucket after a crash."""
    large = incompressible(12 * 2**20, serial=2)
    assert backend.push(document(1)).status == 200
    assert backend.push(large).status == 200

    assert not [tag for tag in object_store.etags(line.target) if "-" in tag]
    assert backend.get().body == large
    assert History(backend).document(1).body == document(1)
    assert backend.send("GET", Accept_Encoding="gzip").headers["Content-Encoding"] == "gzip"


@pytest.mark.terraform
def test_terraform_works_with_the_object_store(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform('resource "terraform_data" "a" { input = "x" }')
    tf.apply()

    tf.run("plan", "-detailed-exitcode", code=0)
    assert History(backend).call("/versions/1:restore").status == 200
    tf.run("plan")


@pytest.mark.parametrize("fault", ["before", "during", "after"])
def test_it_dies_around_a_write(backend: Backend, line: Line, fault: str) -> None:
    """503 or success; acknowledged writes are readable afterwards, and no write is partial."""
    assert backend.push(document(1)).status == 200
    line.fault = fault

    answer = backend.push(document(2))

    assert (answer.status, answer.reason) == (503, "STORAGE_UNAVAILABLE")
    assert int(answer.headers["Retry-After"]) >= 1
    line.fault = ""
    assert backend.get().body == document(1)
    assert [v["serial"] for v in History(backend).versions()] == [1]
    # The client repeats its push unchanged.
    assert backend.push(document(2)).status == 200
    assert backend.get().body == document(2)
    verified(backend.server)


@pytest.mark.parametrize(
    ("fault", "reason"), [("missing", "DOCUMENT_MISSING"), ("altered", "STORAGE_INCONSISTENT")]
)
def test_inconsistent_store_is_reported(
    backend: Backend, line: Line, fault: str, reason: str
) -> None:
    """A lasting fault is reported with its cause; a fault of less than a second is not reported."""
    assert backend.push(document(1)).status == 200
    line.fault = fault

    answer = backend.get()

    assert (answer.status, answer.reason) == (503, reason)
    assert int(answer.headers["Retry-After"]) >= 1
    recovery = threading.Timer(0.3, lambda: setattr(line, "fault", ""))
    recovery.start()
    assert backend.get().body == document(1)
    recovery.join()


def test_hanging_store_is_reported(backend: Backend, line: Line) -> None:
    """A client gets an answer before its timeout, and other clients are served meanwhile."""
    assert backend.push(document(1)).status == 200
    line.fault = "silence"
    started = time.monotonic()

    answer = backend.push(document(2))

    assert (answer.status, answer.reason) == (503, "STORAGE_UNAVAILABLE")
    assert time.monotonic() - started < 20
    assert backend.server.request("GET", "/readyz").status == 200


@pytest.mark.parametrize("fault", ["before", "after"])
def test_it_dies_around_a_read(backend: Backend, line: Line, fault: str) -> None:
    assert backend.push(document(1)).status == 200
    line.fault = fault

    answer = backend.get()

    assert (answer.status, answer.reason) == (503, "STORAGE_UNAVAILABLE")
    line.fault = ""
    assert backend.get().body == document(1)


def test_records_and_locks_need_no_store(backend: Backend, line: Line) -> None:
    assert backend.push(document(1)).status == 200
    line.fault = "before"

    assert History(backend).get().status == 200
    assert backend.holder() is None


def test_there_and_back_while_the_service_runs(backend: Backend) -> None:
    """To the database and back to the store; orphans are deleted, and every digest is right."""
    server = backend.server
    for serial in range(1, 6):
        assert backend.push(document(serial)).status == 200
    count = verified(server)
    history = History(backend)

    server.environment["STATE_STORAGE_WRITES"] = "false"
    (output,) = server.run_commands(("move_documents", "--to", "database", "--json"))
    moved = json.loads(output)
    del server.environment["STATE_STORAGE_WRITES"]

    assert moved == {"moved": count, "damaged": 0}
    for serial in range(1, 6):
        assert history.document(serial).body == document(serial)
    assert backend.push(document(6)).status == 200  # the service itself still writes to the store
    (output,) = server.run_commands(("move_documents", "--to", "storage", "--json"))
    assert json.loads(output) == moved
    assert verified(server) == count + 1
    for serial in range(1, 7):
        assert history.document(serial).body == document(serial)


def test_missing_and_damaged_objects_are_reported(backend: Backend, line: Line) -> None:
    import boto3  # noqa: PLC0415 - slow to load, and only this test looks into the store

    for serial in (1, 2):
        assert backend.push(document(serial)).status == 200
    state_id = History(backend).root.rpartition("/")[2]
    store = boto3.resource(
        "s3",
        endpoint_url=f"http://127.0.0.1:{line.target}",
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
    bucket = store.Bucket(object_store.BUCKET)
    first, second = bucket.objects.filter(Prefix=f"prefix/{state_id}/")
    originals = [summary.get()["Body"].read() for summary in (first, second)]
    assert b"terraform" not in b"".join(originals)

    first.delete()
    second.put(Body=originals[1][:-1] + bytes([originals[1][-1] ^ 1]))
    command = [sys.executable, "manage.py", "verify_states", "--json"]
    done = subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        env=backend.server.environment,
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stdout)
    assert done.returncode == 1

    assert [(p["state"], p["version"]) for p in found["problems"]] == [(state_id, 1), (state_id, 2)]
    assert backend.get().reason == "DOCUMENT_DAMAGED"
    for key, body in zip((first.key, second.key), originals, strict=True):
        bucket.put_object(Key=key, Body=body)
    assert backend.get().body == document(2)
    (output,) = backend.server.run_commands(("sweep_documents", "--json"))
    assert json.loads(output) == {"swept": 0, "dry_run": False}
