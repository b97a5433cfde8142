"""The canary: a process whose keys are not those of the database encrypts nothing."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from infra_service import key_canary
from infra_service.key_canary import EncryptionKeyWrong
from infra_service.lib import encryption
from infra_service.lib.database.probing import connection_of_its_own
from infra_service.models import EncryptionCanary
from states.models import ResourceEntry
from tests.conftest import ClientWith, error_reason
from tests.states.conftest import Backend, document
from tests.states.samples import resource
from tests.states.test_documents import new_key
from tests.support.server import LiveServer, running
from tests.support.transit import Transit
from tests.support.transit import running as running_transit

pytestmark = [pytest.mark.django_db, pytest.mark.both]


@pytest.fixture
def backend(client_with: ClientWith) -> Backend:
    return Backend(client_with("state:read", "state:write"))


@pytest.fixture
def starting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has not verified the canary."""
    monkeypatch.setattr(key_canary, "_is_verified", False)


def restart(monkeypatch: pytest.MonkeyPatch, settings: Any, *keys: str) -> None:
    monkeypatch.setattr(key_canary, "_is_verified", False)
    settings.STATE_ENCRYPTION_KEYS = list(keys)


def test_first_encryption_creates_the_canary(starting: None) -> None:
    encryption.encrypt(b"", b"x")
    encryption.encrypt(b"", b"x")

    assert EncryptionCanary.objects.get().encryption_key == encryption.current_key()
    with CaptureQueriesContext(connection) as queries:
        encryption.encrypt(b"", b"x")
    assert len(queries) == 0


def test_canary_of_a_rolled_back_transaction_is_created_again(starting: None) -> None:
    with transaction.atomic():
        encryption.encrypt(b"", b"x")
        transaction.set_rollback(True)
    assert not EncryptionCanary.objects.exists()

    encryption.encrypt(b"", b"x")
    assert EncryptionCanary.objects.exists()


def test_wrong_key_encrypts_nothing(
    backend: Backend, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (right,) = settings.STATE_ENCRYPTION_KEYS
    name = encryption.current_key()
    key_canary.verify_once(connection)
    restart(monkeypatch, settings, right)
    backend.push(document(1))
    wrong = new_key()

    restart(monkeypatch, settings, wrong)
    answer = backend.push(document(2))
    assert (answer.status_code, error_reason(answer)) == (503, "ENCRYPTION_KEY_WRONG")
    message = answer.json()["error"]["message"]
    assert name in message
    assert wrong not in message
    assert right not in message
    restart(monkeypatch, settings, wrong, right)
    assert backend.get().content == document(1)
    assert backend.push(document(2)).status_code == 200


def test_other_key_is_refused_for_a_database_without_canary(
    backend: Backend, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.push(document(1))
    name = encryption.current_key()
    restart(monkeypatch, settings, new_key())

    with pytest.raises(EncryptionKeyWrong, match=name):
        encryption.encrypt(b"", b"x")
    assert not EncryptionCanary.objects.exists()


def test_wrong_key_does_not_empty_the_index(
    backend: Backend, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_canary.verify_once(connection)
    backend.push(document(1, resources=[resource("a", {"attributes": {"id": "1"}})]))
    call_command("index_states", stdout=io.StringIO())
    restart(monkeypatch, settings, new_key())

    with pytest.raises(CommandError, match="The database is encrypted with the key"):
        call_command("index_states")
    assert ResourceEntry.objects.count() == 1


def test_damaged_canary_is_refused_until_it_is_replaced(starting: None) -> None:
    key_canary.guard()
    EncryptionCanary.objects.update(payload=b"damaged")

    with pytest.raises(EncryptionKeyWrong):
        key_canary.guard()
    rotate(accept_lost_key=True)
    key_canary.guard()


@pytest.fixture
def committed_canary() -> Iterator[None]:
    """Remove the canary that ``/readyz`` commits on its own connection."""
    yield
    with connection_of_its_own() as own, own.cursor() as cursor:
        cursor.execute("DELETE FROM infra_service_encryptioncanary")


def test_readiness_and_check(
    anonymous: Any, settings: Any, monkeypatch: pytest.MonkeyPatch, committed_canary: None
) -> None:
    restart(monkeypatch, settings, new_key())
    assert anonymous.get("/readyz").status_code == 200
    assert run_checks(databases=["default"]) == []

    restart(monkeypatch, settings, new_key())
    answer = anonymous.get("/readyz")
    assert (answer.status_code, error_reason(answer)) == (503, "ENCRYPTION_KEY_WRONG")
    assert [error.id for error in run_checks(databases=["default"])] == ["infra_service.E010"]
    assert anonymous.get("/healthz").status_code == 200


def rotate(**options: Any) -> None:
    call_command("rotate_state_keys", stdout=io.StringIO(), stderr=io.StringIO(), **options)


def test_rotation_encrypts_the_canary_with_the_first_key(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = new_key(), new_key()
    restart(monkeypatch, settings, old)
    encryption.encrypt(b"", b"x")
    restart(monkeypatch, settings, new, old)
    encryption.encrypt(b"", b"x")

    rotate()

    restart(monkeypatch, settings, new)
    encryption.encrypt(b"", b"x")
    restart(monkeypatch, settings, old)
    with pytest.raises(EncryptionKeyWrong):
        encryption.encrypt(b"", b"x")


def test_lost_key_is_accepted_on_request_only(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    restart(monkeypatch, settings, new_key())
    encryption.encrypt(b"", b"x")
    lost = encryption.current_key()
    restart(monkeypatch, settings, new_key())

    with pytest.raises(CommandError, match=f"{lost}.*--accept-lost-key"):
        rotate()
    rotate(accept_lost_key=True)

    encryption.encrypt(b"", b"x")
    assert EncryptionCanary.objects.get().encryption_key == encryption.current_key()


@pytest.fixture
def transit() -> Iterator[Transit]:
    with running_transit(Transit()) as server:
        yield server


def test_service_with_wrapped_keys(tmp_path: Path, transit: Transit) -> None:
    right, wrong = new_key(), new_key()
    server = LiveServer(
        tmp_path, STATE_ENCRYPTION_KEYS=transit.wrap(right), **transit.environment()
    )
    with running(server):
        token = server.token("state:read", "state:write")
        path = "/api/v1/state/at/network/production"
        for body in (document(1), document(2)):
            assert server.request("POST", path, body, token=token).status == 200
        server.stop()
        # Requests of the start alone: one for gunicorn, whose workers are forks.
        assert transit.requests == 1

        server.environment["STATE_ENCRYPTION_KEYS"] = transit.wrap(wrong)
        with pytest.raises(RuntimeError, match="The database is encrypted with the key"):
            server.start()
        assert server.ended() == 1

        # The same key, wrapped by a newer version or in plain, is the same key.
        transit.rotate()
        for entry in (transit.wrap(right), right):
            server.environment["STATE_ENCRYPTION_KEYS"] = entry
            server.start()
            assert server.request("GET", path, token=token).body == document(2)
            server.stop()

        server.environment["STATE_ENCRYPTION_KEYS"] = transit.wrap(right)
        server.environment["VAULT_TOKEN"] = "hvs.expired"
        with pytest.raises(RuntimeError, match=r"key 1 cannot be unwrapped.*403"):
            server.start()
        assert server.ended() == 1
    log = server.log.read_text()
    for secret in (right, wrong, transit.token, "hvs.", "vault:v"):
        assert secret not in log
    assert not re.search("Traceback", log)
