"""Races over HTTP, against several workers: exactly one request wins, and the database agrees."""

from __future__ import annotations

import hashlib
import json
import random
import uuid
from collections import Counter

import pytest

from tests.e2e.backend import Backend, content_md5, document, lock_info
from tests.e2e.database import contradictions, problems, snapshot, versions_of
from tests.e2e.together import Call, at_once, in_threads
from tests.support.server import LiveServer

pytestmark = pytest.mark.both

MANY = 20
ROUNDS = 90


def lock_call(lock_id: str) -> Call:
    body = json.dumps(lock_info(lock_id, Who=f"client {lock_id}")).encode()
    return Call("LOCK", body)


def push_call(body: bytes, lock_id: str = "") -> Call:
    suffix = f"?ID={lock_id}" if lock_id else ""
    return Call("POST", body, suffix, {"Content-MD5": content_md5(body)})


@pytest.mark.parametrize("known", [False, True], ids=["new-state", "known-state"])
def test_20_locks_at_once(live: LiveServer, token: str, known: bool) -> None:
    backends = [Backend(live, token) for _ in range(10)]
    for backend in backends:
        if known:
            assert backend.push(document()).status == 200
        ids = [str(uuid.uuid4()) for _ in range(MANY)]

        answers = at_once(backend, [lock_call(lock_id) for lock_id in ids])

        assert Counter(answer.status for answer in answers) == {200: 1, 423: MANY - 1}
        (winner,) = (i for i, a in zip(ids, answers, strict=True) if a.status == 200)
        for answer in answers:
            named = {k: v for k, v in answer.json().items() if k != "error"}
            holder = ", token test of operator" if answer.status == 423 else ""
            assert named == lock_info(winner, Who=f"client {winner}{holder}")
        assert backend.unlock(winner).status == 200
    assert contradictions(live, snapshot(live, *backends)) == []


def test_the_same_lock_20_times_at_once(backend: Backend) -> None:
    lock_id = str(uuid.uuid4())
    answers = at_once(backend, [lock_call(lock_id)] * MANY)
    assert {answer.status for answer in answers} == {200}
    assert problems(backend) == []  # also: the audit log has a single lock


def test_lock_and_unlock_20_times_at_once(backend: Backend) -> None:
    """Repeated UNLOCKs of a lock never release the next lock."""
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    assert backend.lock(first).status == 200
    unlock = Call("UNLOCK", json.dumps(lock_info(first)).encode())
    answers = at_once(backend, [unlock] * (MANY - 1) + [lock_call(second)])
    assert {answer.status for answer in answers[:-1]} <= {200, 409}
    holder = backend.holder()
    assert (answers[-1].status, holder and holder["ID"]) in {(200, second), (423, None)}
    assert problems(backend) == []


@pytest.mark.parametrize("locked", [True, False], ids=["locked", "unlocked"])
def test_20_identical_pushes_create_a_single_version(backend: Backend, locked: bool) -> None:
    for serial in range(1, 6):
        lock_id = str(uuid.uuid4()) if locked else ""
        if locked:
            assert backend.lock(lock_id).status == 200
        body = document(serial, filler="x" * 50_000)
        answers = at_once(backend, [push_call(body, lock_id)] * MANY)
        assert {answer.status for answer in answers} == {200}
        assert backend.get().body == body
        assert [version["serial"] for version in versions_of(backend)] == [*range(1, serial + 1)]
        if locked:
            assert backend.unlock(lock_id).status == 200
    assert problems(backend) == []


def test_20_different_pushes_with_the_same_serial(backend: Backend) -> None:
    for serial in range(1, 6):
        bodies = [document(serial, client=number) for number in range(MANY)]
        answers = at_once(backend, [push_call(body) for body in bodies])
        assert Counter(answer.status for answer in answers) == {200: 1, 409: MANY - 1}
        (winner,) = (b for b, a in zip(bodies, answers, strict=True) if a.status == 200)
        assert {a.reason for a in answers if a.status == 409} == {"SERIAL_CONFLICT"}
        assert backend.get().body == winner
    assert len(versions_of(backend)) == 5
    assert problems(backend) == []


def test_twenty_rising_serials_keep_the_newest(backend: Backend) -> None:
    bodies = [document(serial) for serial in range(1, MANY + 1)]
    answers = at_once(backend, [push_call(body) for body in bodies])
    assert {answer.status for answer in answers} <= {200, 409}
    assert answers[-1].status == 200  # the highest follows whatever came first
    serials = [version["serial"] for version in versions_of(backend)]
    assert serials == sorted(s for s, a in enumerate(answers, start=1) if a.status == 200)
    assert backend.get().body == bodies[-1]


def test_a_push_against_20_locks(backend: Backend) -> None:
    """A writer without a lock precedes the lock or is refused; it never writes under it."""
    for serial in range(1, 6):
        ids = [str(uuid.uuid4()) for _ in range(MANY - 1)]
        calls = [lock_call(lock_id) for lock_id in ids] + [push_call(document(serial))]
        *locks, push = at_once(backend, calls)
        (winner,) = (i for i, a in zip(ids, locks, strict=True) if a.status == 200)
        assert push.status in {200, 423}
        stored = backend.get()
        assert (push.status == 200) == (stored.status == 200 and stored.body == document(serial))
        assert backend.unlock(winner).status == 200
    assert problems(backend) == []


def storm(backend: Backend) -> Counter[str]:
    """Lock, push, unlock and push without a lock, in random order, as one of many clients."""
    choice = random.Random()
    seen: Counter[str] = Counter()
    for _ in range(ROUNDS):
        lock_id = str(uuid.uuid4())
        if choice.random() < 0.5:
            answer = backend.lock(lock_id)
            seen[f"lock {answer.status}"] += 1
            if answer.status != 200:
                continue
            for _ in range(choice.randrange(3)):
                # A writer with a lock may send any serial. Never the same twice: a repeated push
                # creates no version.
                unique = str(uuid.uuid4())
                body = document(choice.randrange(1000), by=unique, filler="x" * 20_000)
                seen[f"locked push {backend.push(body, lock_id).status}"] += 1
                assert backend.get().body == body
            seen[f"unlock {backend.unlock(lock_id).status}"] += 1
        else:
            body = document(choice.randrange(2000), by=lock_id)
            seen[f"push {backend.push(body).status}"] += 1
    return seen


def test_concurrent_clients_keep_the_state_consistent(live: LiveServer, token: str) -> None:
    backends = [Backend(live, token) for _ in range(2)]
    clients = [lambda b=b: storm(b) for b in backends for _ in range(8)]
    seen = sum(in_threads(clients), Counter[str]())

    assert seen["lock 200"] == seen["unlock 200"] > 0
    assert seen["locked push 200"] > 0
    assert set(seen) <= {
        "lock 200", "lock 423", "locked push 200", "unlock 200", "push 200", "push 409", "push 423",
    }  # fmt: skip
    found = snapshot(live, *backends)
    assert contradictions(live, found) == []
    for backend in backends:
        assert backend.holder() is None
        *_, last = found.versions_of(backend.component_id, backend.environment_id)
        body = backend.get().body
        digest = hashlib.md5(body, usedforsecurity=False).hexdigest()
        assert (digest, len(body)) == (last["md5"], last["size_bytes"])
    pushed = seen["locked push 200"] + seen["push 200"]
    keys = [(b.component_id, b.environment_id) for b in backends]
    assert sum(len(found.versions_of(*key)) for key in keys) == pushed
