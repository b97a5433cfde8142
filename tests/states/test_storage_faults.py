"""An object store that answers, and not as it should."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import REGISTRY

from states.keeping import faults
from states.models import StateVersion
from tests.conftest import error_reason
from tests.states.conftest import Backend, UnsteadyStorage, document

Alter = Callable[[bytes], bytes]


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record pauses instead of sleeping."""
    made: list[float] = []
    monkeypatch.setattr(faults.time, "sleep", made.append)
    return made


class _Reported(io.BytesIO):
    """An object as S3 delivers it: the declared size is independent of the bytes."""

    def __init__(self, sent: bytes, held: bytes) -> None:
        super().__init__(sent)
        self.size = len(held)


def sending(monkeypatch: pytest.MonkeyPatch, store: UnsteadyStorage, *alter: Alter) -> list[int]:
    """Alter each download by the next of these functions; then stop altering."""
    real, pending, sent = store.open, [*alter], [0]

    def open_(name: str, mode: str = "rb") -> Any:
        sent[0] += 1
        with real(name, mode) as file:
            held = file.read()
        return _Reported(pending.pop(0)(held) if pending else held, held)

    monkeypatch.setattr(store, "open", open_)
    return sent


def _missing(_: bytes) -> bytes:
    raise FileNotFoundError


def _short(content: bytes) -> bytes:
    return content[:-5]


def _flipped(place: int) -> Alter:
    return lambda content: content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def counted(fault: str) -> float:
    return REGISTRY.get_sample_value("infra_storage_faults_total", {"fault": fault}) or 0.0


@pytest.fixture
def pushed(backend: Backend, store: UnsteadyStorage) -> Backend:
    backend.push(document())
    return backend


@pytest.mark.parametrize(
    ("fault", "alter"),
    [
        ("missing", [_missing, _missing]),
        ("altered", [_short]),
        ("altered", [_flipped(20), _flipped(21)]),
    ],
)
def test_transient_faults_are_retried(
    pushed: Backend,
    store: UnsteadyStorage,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    alter: list[Alter],
) -> None:
    """The client notices nothing, and the operator's counter does."""
    before = counted(fault)
    sending(monkeypatch, store, *alter)

    response = pushed.get()

    assert (response.status_code, response.content) == (200, document())
    assert counted(fault) > before


def test_missing_object_is_reported(
    pushed: Backend, store: UnsteadyStorage, pauses: list[float]
) -> None:
    store.delete(StateVersion.objects.get().object_name)

    response = pushed.get()

    assert (response.status_code, error_reason(response)) == (503, "DOCUMENT_MISSING")
    assert response["Retry-After"] == "5"
    assert "missing" in response.json()["error"]["message"]
    assert sum(pauses) <= 1


@pytest.mark.parametrize(
    "alter", [[_short] * 9, [_flipped(place) for place in range(20, 29)]], ids=["short", "changed"]
)
def test_inconsistent_store_is_reported(
    pushed: Backend, store: UnsteadyStorage, monkeypatch: pytest.MonkeyPatch, alter: list[Alter]
) -> None:
    sent = sending(monkeypatch, store, *alter)

    response = pushed.get()

    assert (response.status_code, error_reason(response)) == (503, "STORAGE_INCONSISTENT")
    assert sent == [len(faults.PAUSES) + 1]


def test_damage_is_reported(
    pushed: Backend, store: UnsteadyStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same wrong bytes on each read, with metadata that matches them."""
    sending(monkeypatch, store, *[_flipped(20)] * 9)
    before = counted("damaged")

    response = pushed.get()

    assert (response.status_code, error_reason(response)) == (500, "DOCUMENT_DAMAGED")
    assert counted("damaged") > before


def test_a_key_that_is_missing_is_no_fault_of_the_store(
    pushed: Backend, store: UnsteadyStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    StateVersion.objects.update(encryption_key="0" * 16)
    sent = sending(monkeypatch, store)

    assert error_reason(pushed.get()) == "DOCUMENT_KEY_MISSING"
    assert sent == [0]
