"""The command rotate_state_keys."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from states.keeping import reencryption
from states.models import StateVersion
from tests.states.conftest import Backend, document
from tests.states.test_documents import new_key
from tests.terminal import Terminal


def _rotate(**options: Any) -> str:
    out = io.StringIO()
    call_command("rotate_state_keys", stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def test_every_document_gets_the_first_key(backend: Backend, settings: Any) -> None:
    for serial in (1, 2, 3):
        backend.push(document(serial))
    new = new_key()
    settings.STATE_ENCRYPTION_KEYS = [new, *settings.STATE_ENCRYPTION_KEYS]

    assert _rotate() == "3 documents re-encrypted\n"

    settings.STATE_ENCRYPTION_KEYS = [new]
    assert backend.get().content == document(3)
    assert not reencryption.outdated().exists()


def test_again_there_is_nothing_to_do(backend: Backend) -> None:
    backend.push(document())

    assert json.loads(_rotate(json=True)) == {"reencrypted": 0}


def test_a_run_that_was_stopped_is_continued(backend: Backend, settings: Any) -> None:
    for serial in (1, 2, 3):
        backend.push(document(serial))
    settings.STATE_ENCRYPTION_KEYS = [new_key(), *settings.STATE_ENCRYPTION_KEYS]
    next(reencryption.rotate_keys())
    assert reencryption.outdated().count() == 2
    assert backend.get().content == document(3)

    assert json.loads(_rotate(json=True)) == {"reencrypted": 2}


def test_a_version_that_is_gone_meanwhile(backend: Backend, settings: Any) -> None:
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


def test_a_missing_key_stops_it(backend: Backend, settings: Any) -> None:
    backend.push(document())
    settings.STATE_ENCRYPTION_KEYS = [new_key()]

    with pytest.raises(CommandError, match="stopped after 0 documents"):
        _rotate()


def test_progress(backend: Backend, settings: Any, each_count_is_drawn: None) -> None:
    for serial in (1, 2, 3):
        backend.push(document(serial))
    settings.STATE_ENCRYPTION_KEYS = [new_key(), *settings.STATE_ENCRYPTION_KEYS]
    terminal = Terminal()

    call_command("rotate_state_keys", stdout=io.StringIO(), stderr=terminal)

    assert " 3 of 3, " in terminal.drawn[-1]
