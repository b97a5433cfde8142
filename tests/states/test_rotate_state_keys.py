"""The command rotate_state_keys."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from infra_service import key_rotation
from infra_service.lib.encryption import Encrypted, current_key
from states.document import sealing
from states.keeping import reencryption
from states.models import StateVersion
from tests.states.conftest import Backend, document
from tests.states.test_documents import new_key
from tests.support.terminal import Terminal


def _rotate(**options: Any) -> str:
    out = io.StringIO()
    call_command("rotate_state_keys", stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def _counts(**documents: int) -> dict[str, Any]:
    """Return the whole outcome, in which only documents were processed."""
    none = {"reencrypted": 0, "failed": 0}
    kinds = [kind.name for kind in key_rotation.KINDS]
    documents = {**none, **documents}
    # The first member is that of 1.0.0.
    return {
        "reencrypted": documents["reencrypted"],
        "documents": documents,
        **dict.fromkeys(kinds, none),
    }


def test_every_document_gets_the_first_key(backend: Backend, settings: Any) -> None:
    for serial in (1, 2, 3):
        backend.push(document(serial))
    new = new_key()
    settings.STATE_ENCRYPTION_KEYS = [new, *settings.STATE_ENCRYPTION_KEYS]

    assert _rotate().startswith("3 documents re-encrypted\n")

    settings.STATE_ENCRYPTION_KEYS = [new]
    assert backend.get().content == document(3)
    assert not reencryption.outdated().exists()


def test_repeated_run_is_a_no_op(backend: Backend) -> None:
    backend.push(document())

    assert json.loads(_rotate(json=True)) == _counts()


def test_a_run_that_was_stopped_is_continued(backend: Backend, settings: Any) -> None:
    for serial in (1, 2, 3):
        backend.push(document(serial))
    settings.STATE_ENCRYPTION_KEYS = [new_key(), *settings.STATE_ENCRYPTION_KEYS]
    next(reencryption.rotate_keys())
    assert reencryption.outdated().count() == 2
    assert backend.get().content == document(3)

    assert json.loads(_rotate(json=True)) == _counts(reencrypted=2)


def test_concurrently_removed_version_is_skipped(backend: Backend, settings: Any) -> None:
    for serial in (1, 2):
        backend.push(document(serial))
    settings.STATE_ENCRYPTION_KEYS = [new_key(), *settings.STATE_ENCRYPTION_KEYS]
    run = reencryption.rotate_keys()
    next(run)
    type(backend.record).objects.all().update(
        current_version=None, version_number=0, serial=None, md5=None, size_bytes=None
    )
    StateVersion.objects.filter(number=2).delete()

    assert list(run) == []


def test_missing_key_is_reported(backend: Backend, settings: Any) -> None:
    backend.push(document())
    settings.STATE_ENCRYPTION_KEYS = [new_key()]

    with pytest.raises(CommandError, match="1 value not re-encrypted"):
        _rotate()


def test_damaged_document_is_reported_and_does_not_stop_the_run(
    backend: Backend, settings: Any
) -> None:
    """So that a key that leaked can be retired."""
    for serial in (1, 2, 3):
        backend.push(document(serial))
    StateVersion.objects.filter(number=1).update(document=b"\0" * 40)
    new = new_key()
    settings.STATE_ENCRYPTION_KEYS = [new, *settings.STATE_ENCRYPTION_KEYS]
    out, err = io.StringIO(), io.StringIO()

    with pytest.raises(CommandError, match="1 value not re-encrypted"):
        call_command("rotate_state_keys", stdout=out, stderr=err)

    assert out.getvalue().startswith("2 documents re-encrypted\n")
    assert err.getvalue() == (
        f"failed: state {backend.record.pk} version 1: The stored document is damaged. "
        "Restore it from a backup, or restore an earlier version.\n"
    )
    assert list(reencryption.outdated().values_list("number", flat=True)) == [1]
    settings.STATE_ENCRYPTION_KEYS = [new]
    assert backend.get().content == document(3)


def test_error_in_a_document_does_not_stop_the_run(
    backend: Backend, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for serial in (1, 2, 3):
        backend.push(document(serial))
    settings.STATE_ENCRYPTION_KEYS = [new_key(), *settings.STATE_ENCRYPTION_KEYS]
    real = sealing.seal

    def seal(gzipped: bytes, place: sealing.Place) -> Encrypted:
        if place.number == 2:
            raise ValueError("unforeseen")
        return real(gzipped, place)

    monkeypatch.setattr(sealing, "seal", seal)

    with pytest.raises(CommandError, match="1 value not re-encrypted"):
        _rotate()

    assert list(reencryption.outdated().values_list("number", flat=True)) == [2]


def test_progress_is_shown(backend: Backend, settings: Any, each_count_is_drawn: None) -> None:
    for serial in (1, 2, 3):
        backend.push(document(serial))
    settings.STATE_ENCRYPTION_KEYS = [new_key(), *settings.STATE_ENCRYPTION_KEYS]
    terminal = Terminal()

    call_command("rotate_state_keys", stdout=io.StringIO(), stderr=terminal)

    assert " 3 of 3, " in terminal.drawn[-1]


@pytest.mark.django_db
def test_second_factors_are_counted_while_sign_on_is_off() -> None:
    secrets = [f"{current_key()}:new", "another:old", "of SECRET_KEY"]
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE mfa_authenticator (type varchar(20), data jsonb)")
        cursor.executemany(
            "INSERT INTO mfa_authenticator VALUES ('totp', %s)",
            [(json.dumps({"secret": secret}),) for secret in secrets],
        )
        cursor.execute("INSERT INTO mfa_authenticator VALUES ('webauthn', '{}')")
    err = io.StringIO()

    call_command("rotate_state_keys", stdout=io.StringIO(), stderr=err)

    assert err.getvalue().startswith("skipped: 2 second factors, because sign-on and ")
