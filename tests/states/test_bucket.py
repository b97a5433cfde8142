"""An object store without the configured bucket: a mistake of the configuration, not an outage."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError, SystemCheckError
from django.test import Client
from structlog.testing import capture_logs

from infra_service.operations.object_storage import s3_storage
from states.keeping import faults, readiness
from states.models import State
from tests.conftest import error_reason
from tests.e2e import object_store
from tests.e2e.object_store import BUCKET, Line
from tests.states.conftest import Backend, document


@pytest.fixture(scope="module")
def line() -> Iterator[Line]:
    with object_store.running() as port:
        line = Line(port)
        yield line
        line.close()


class Installation:
    """The service with changing addresses of the object store."""

    def __init__(self, settings: Any, monkeypatch: pytest.MonkeyPatch, line: Line) -> None:
        self._settings, self._monkeypatch, self.url = settings, monkeypatch, line.url
        self.with_bucket(BUCKET)

    def with_bucket(self, name: str, url: str = "") -> None:
        entry = s3_storage((url or self.url).replace(f"@{BUCKET}", f"@{name}"))
        self._settings.STORAGES = {**self._settings.STORAGES, "states": entry}
        self._monkeypatch.setattr(readiness, "_verdict", None)
        # The first client of a loaded machine takes longer to set up than a request waits.
        self._monkeypatch.setattr(readiness, "_WAIT", 30.0)


@pytest.fixture
def installation(
    settings: Any, monkeypatch: pytest.MonkeyPatch, line: Line
) -> Iterator[Installation]:
    monkeypatch.setattr(faults, "PAUSES", (0.0, 0.0))
    line.fault = ""
    yield Installation(settings, monkeypatch, line)
    line.fault = ""


def refused(answer: Any) -> bool:
    """Return whether the response reports a configuration error without asking for a retry."""
    reason = (answer.status_code, error_reason(answer))
    return reason == (503, "STORAGE_MISCONFIGURED") and "Retry-After" not in answer


def test_a_push_and_a_read(installation: Installation, backend: Backend) -> None:
    assert backend.push(document(1)).status_code == 200
    installation.with_bucket("no-such-bucket")
    with capture_logs() as logs:
        push, read = backend.push(document(2)), backend.get()

    assert refused(push)
    assert refused(read)
    assert "again" not in push.json()["error"]["message"]
    reasons = [one["reason"] for one in logs if one["event"] == "storage_misconfigured"]
    assert set(reasons) == {"NoSuchBucket", "404"}
    assert not any("exc_info" in one for one in logs)

    installation.with_bucket(BUCKET)
    assert backend.get().content == document(1)


def test_unreadable_objects_do_not_stop_the_pass(
    installation: Installation, backend: Backend, line: Line
) -> None:
    """Three failures in a row stop a pass only if the store does not respond for its bucket."""
    states = [Backend(backend.client) for _ in range(5)]
    for each in states:
        assert each.push(document(1)).status_code == 200
    ordered = sorted(states, key=lambda each: each.record.pk)
    bad = {str(each.record.pk).encode() for each in ordered[:4]}
    line.fault, line.broken = "object", bad

    with pytest.raises(CommandError, match="1 state indexed; 4 failed"):
        call_command("index_states")
    line.fault = "before"
    with pytest.raises(CommandError, match="stopped after 0 states"):
        call_command("index_states")

    line.fault = ""
    call_command("index_states")
    assert not State.objects.due().exists()


def test_missing_object_is_reported(
    installation: Installation, backend: Backend, line: Line
) -> None:
    assert backend.push(document(1)).status_code == 200
    line.fault = "missing"

    assert error_reason(backend.get()) == "DOCUMENT_MISSING"


def test_readiness_checks_the_store(installation: Installation, db: None) -> None:
    assert Client().get("/readyz").status_code == 200

    installation.with_bucket("no-such-bucket")
    assert refused(Client().get("/readyz"))
    assert Client().get("/healthz").status_code == 200


def test_readiness_is_verified_again(
    installation: Installation, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verdict is cached for a limited time and then checked again."""
    installation.with_bucket("no-such-bucket")
    assert refused(Client().get("/readyz"))
    verdict = readiness._verdict
    installation.with_bucket(BUCKET)
    monkeypatch.setattr(readiness, "_verdict", verdict)
    assert refused(Client().get("/readyz"))

    monkeypatch.setattr(readiness, "_FRESH", 0.0)
    assert Client().get("/readyz").status_code == 200


def test_readiness_without_a_store(settings: Any, db: None) -> None:
    settings.STORAGES = {k: v for k, v in settings.STORAGES.items() if k != "states"}

    assert Client().get("/readyz").status_code == 200


def test_an_outage_is_no_mistake(
    installation: Installation, backend: Backend, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service stays ready while its store is down or silent, and answers at once."""
    monkeypatch.setattr(readiness, "_WAIT", 0.1)
    line.fault = "silence"
    assert Client().get("/readyz").status_code == 200
    line.fault = ""
    assert readiness._verdict is not None
    assert readiness._verdict.result(60) is False
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    url = installation.url.replace(str(line.port), str(port))
    installation.with_bucket(BUCKET, url)

    assert error_reason(backend.push(document(1))) == "STORAGE_UNAVAILABLE"
    assert Client().get("/readyz").status_code == 200
    call_command("check", deploy=True, fail_level="ERROR", tags=["storage"])


def test_the_check(installation: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("check", deploy=True, tags=["storage"])
    assert "no issues" in capsys.readouterr().out

    installation.with_bucket("no-such-bucket")
    with pytest.raises(SystemCheckError, match=r"states\.E003.*the bucket does not exist"):
        call_command("check", deploy=True, tags=["storage"])


@pytest.mark.parametrize("code", ["AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"])
def test_rejected_credentials_are_reported(
    code: str, installation: Installation, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """moto accepts every signature."""
    from botocore.exceptions import ClientError  # noqa: PLC0415
    from storages.backends.s3 import S3Storage  # noqa: PLC0415

    def refuse(*_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "PutObject")

    monkeypatch.setattr(S3Storage, "save", refuse)

    assert refused(backend.push(document(1)))
