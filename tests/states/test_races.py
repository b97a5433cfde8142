"""Races between a read and a write; each test puts a competing writer exactly in between.

Real simultaneous clients are in tests/e2e.
"""

import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from apikeys import audit
from apikeys.actors import Actor
from apikeys.models import AccessToken, AuditEvent
from infra_service.lib.database import retries
from states.models import State, StateVersion
from states.targets import StateTarget
from tests.conftest import error_reason
from tests.states.conftest import Backend, Interrupt, document, lock_info


def test_two_pushes_with_the_same_serial(backend: Backend, after_the_first_look: Interrupt) -> None:
    backend.push(document(1))
    other = document(2, outputs={"other": {}})
    after_the_first_look(lambda: backend.push(other))

    response = backend.push(document(2))

    assert (response.status_code, error_reason(response)) == (409, "SERIAL_CONFLICT")
    assert backend.get().content == other


def test_the_same_push_twice_at_once(backend: Backend, after_the_first_look: Interrupt) -> None:
    backend.push(document(1))
    after_the_first_look(lambda: backend.push(document(2)))

    assert backend.push(document(2)).status_code == 200
    assert StateVersion.objects.count() == 2


@pytest.mark.parametrize(
    ("query", "late_is_stored"), [("", False), ("&force=true", True)], ids=["plain", "forced"]
)
def test_late_push_does_not_replace_its_successors(
    admin: Backend,
    lock_id: uuid.UUID,
    after_the_first_look: Interrupt,
    query: str,
    late_is_stored: bool,
) -> None:
    """The client repeated the push after a timeout, and pushed the next serial with its lock."""
    admin.lock(lock_id)
    address = f"?ID={lock_id}"

    def continue_without_the_answer() -> None:
        for serial in (2, 3):
            assert admin.push(document(serial), address).status_code == 200

    after_the_first_look(continue_without_the_answer)
    late = admin.push(document(2), address + query)

    assert late.status_code == (200 if late_is_stored else 409)
    assert admin.get().content == document(2 if late_is_stored else 3)
    assert admin.push(document(1), address).status_code == 200, "not late, such as push -force"


def test_a_first_push_twice_at_once(backend: Backend, after_the_first_look: Interrupt) -> None:
    after_the_first_look(lambda: backend.push(document(1)))

    assert backend.push(document(1)).status_code == 200
    assert StateVersion.objects.count() == 1


def test_concurrently_released_lock_is_detected(
    backend: Backend, admin: Backend, lock_id: uuid.UUID, after_the_first_look: Interrupt
) -> None:
    backend.lock(lock_id)
    after_the_first_look(lambda: admin.unlock(None))

    response = backend.push(document(), f"?ID={lock_id}")

    assert (response.status_code, error_reason(response)) == (409, "LOCK_NOT_HELD")
    assert StateVersion.objects.count() == 0


def test_concurrently_acquired_lock_is_detected(
    backend: Backend, lock_id: uuid.UUID, after_the_first_look: Interrupt
) -> None:
    backend.push(document(1))
    after_the_first_look(lambda: backend.lock(lock_id))

    assert backend.push(document(2)).status_code == 423
    assert backend.record.serial == 1


@pytest.mark.parametrize("is_named", [False, True])
def test_a_lock_that_changes_hands_is_not_broken(
    backend: Backend,
    admin: Backend,
    lock_id: uuid.UUID,
    after_the_first_look: Interrupt,
    is_named: bool,
) -> None:
    other = uuid.uuid4()
    backend.lock(lock_id)

    def change_hands() -> None:
        backend.unlock(lock_id)
        backend.lock(other)

    after_the_first_look(change_hands)

    if is_named:
        body = {"reason": "the laptop is lost", "lock_id": str(lock_id)}
        response = admin.call(":force-unlock", body)
        assert (response.status_code, error_reason(response)) == (409, "LOCK_NOT_HELD")
    else:
        # The lock that existed at the start of the request was released.
        assert admin.unlock(None).status_code == 200
    assert backend.record.lock_id == other
    assert not AuditEvent.objects.filter(action="state.force_unlock").exists()


def test_a_forced_unlock_under_contention(
    backend: Backend, admin: Backend, lock_id: uuid.UUID, after_the_first_look: Interrupt
) -> None:
    """The holder releases its lock first, as at the end of each of many short runs."""
    backend.push(document())
    backend.lock(lock_id)
    after_the_first_look(lambda: backend.unlock(lock_id))

    assert admin.unlock(None).status_code == 200
    assert backend.record.lock_id is None


def test_an_unlock_twice_at_once(
    backend: Backend, lock_id: uuid.UUID, after_the_first_look: Interrupt
) -> None:
    Backend(backend.client).lock(uuid.uuid4())
    backend.lock(lock_id)
    after_the_first_look(lambda: backend.unlock(lock_id))

    assert backend.unlock(lock_id).status_code == 200


class RolledBackError(Exception):
    """A serialization failure, as PostgreSQL-compatible databases report it."""

    sqlstate = "40001"


def test_rolled_back_transactions_are_retried(
    admin: Backend, lock_id: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = audit._event, set[str]()

    def event(actor: Any, action: str, *args: Any) -> AuditEvent:
        if action not in seen:
            seen.add(action)
            raise OperationalError from RolledBackError
        return real(actor, action, *args)

    monkeypatch.setattr(audit, "_event", event)
    monkeypatch.setattr(retries, "_PAUSES", (0, 0))
    # The transaction of the test surrounds all others and does not belong to the service.
    monkeypatch.setattr(retries, "connection", SimpleNamespace(in_atomic_block=False))

    operations = (
        lambda: admin.push(document(1)),
        lambda: admin.lock(lock_id),
        lambda: admin.unlock(lock_id),
        lambda: admin.lock(lock_id),
        lambda: admin.unlock(None),
        lambda: admin.call("/versions/1:restore"),
        admin.delete,
        lambda: admin.call(":undelete"),
    )
    assert [operation().status_code for operation in operations] == [200] * len(operations)

    actions = ("push", "lock", "unlock", "force_unlock", "restore", "delete", "undelete")
    assert seen == {"state.create", *(f"state.{action}" for action in actions)}
    assert AuditEvent.objects.filter(action__in=seen).count() == len(operations) + 1


@pytest.mark.parametrize("method", ["push", "lock", "unlock", "delete"])
def test_persistent_conflict_returns_503(
    admin: Backend, lock_id: uuid.UUID, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Each read is outdated at once: a competing client acquires and releases the lock."""
    admin.push(document(1))
    real = StateTarget.find

    info = lock_info(lock_id)
    held = {"lock_id": lock_id, "lock_info": info, "lock_acquired_at": timezone.now()}
    free = dict.fromkeys(held)
    before, after = (held, free) if method == "unlock" else (free, held)

    def find(target: StateTarget, actor: Actor) -> State | None:
        State.objects.all().change(**before)
        seen = real(StateTarget(**target.ids), actor)  # not the prefetched row
        State.objects.all().change(**after)
        return seen

    monkeypatch.setattr(StateTarget, "find", find)

    response = {
        "push": lambda: admin.push(document(2)),
        "lock": lambda: admin.lock(uuid.uuid4()),
        "unlock": lambda: admin.unlock(lock_id),
        "delete": admin.delete,
    }[method]()

    assert (response.status_code, error_reason(response)) == (503, "WRITE_CONFLICT")
    assert StateVersion.objects.count() == 1


@pytest.mark.parametrize("method", ["push", "lock", "unlock", "force-unlock", "restore"])
def test_concurrently_revoked_caller_is_refused(
    admin: Backend, lock_id: uuid.UUID, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Its request was authorized, and the statement that writes checks it again."""
    admin.push(document(1))
    if "unlock" in method:
        admin.lock(lock_id)
    before = AuditEvent.objects.count(), admin.record.revision
    just_before_it_writes(monkeypatch, lambda: AccessToken.objects.revoke(admin.client.token.pk))

    response = operations(admin, lock_id)[method]()

    assert (response.status_code, error_reason(response)) == (401, "CREDENTIALS_INVALID")
    assert (AuditEvent.objects.count(), admin.record.revision) == before
    assert StateVersion.objects.count() == 1


@pytest.mark.parametrize("method", ["push", "lock", "unlock", "force-unlock", "restore"])
def test_concurrently_renamed_caller_is_accepted(
    admin: Backend, lock_id: uuid.UUID, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    admin.push(document(1))
    if "unlock" in method:
        admin.lock(lock_id)
    before = AuditEvent.objects.count(), admin.record.revision
    just_before_it_writes(monkeypatch, lambda: AccessToken.objects.change(name="renamed"))

    assert operations(admin, lock_id)[method]().status_code == 200
    assert (AuditEvent.objects.count(), admin.record.revision) == (before[0] + 1, before[1] + 1)


def just_before_it_writes(monkeypatch: pytest.MonkeyPatch, event: Callable[[], Any]) -> None:
    real, pending = audit.AuditedUpdate.run, [event]

    def run(self: Any, *args: Any, **given: Any) -> bool:
        if pending:
            pending.pop()()
        return real(self, *args, **given)

    monkeypatch.setattr(audit.AuditedUpdate, "run", run)


def operations(state: Backend, lock_id: uuid.UUID) -> dict[str, Callable[[], Any]]:
    return {
        "push": lambda: state.push(document(2)),
        "lock": lambda: state.lock(lock_id),
        "unlock": lambda: state.unlock(lock_id),
        "force-unlock": lambda: state.unlock(None),
        "restore": lambda: state.call("/versions/1:restore"),
    }
