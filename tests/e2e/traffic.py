"""Clients that push until their server dies, and remember acknowledged requests."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import itertools
import json
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.e2e.backend import Backend, document
from tests.e2e.database import Snapshot
from tests.support.server import Answer, LiveServer
from tests.support.waiting import MAX_WAIT, wait_until


def md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


class GoneError(Exception):
    """The server did not answer: the effect of the request is unknown."""


@dataclass
class Ledger:
    """The sent and the acknowledged pushes of a state. Serials only increase."""

    backend: Backend
    shared: bool
    serials: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    sent: dict[str, int] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    locks_sent: set[str] = field(default_factory=set)
    lock_held: str | None = None
    locks_released: set[str] = field(default_factory=set)

    def broken_promises(self, found: Snapshot) -> list[str]:
        """Compare the state with the acknowledged pushes; call it without concurrent writes."""
        key = (self.backend.component_id, self.backend.environment_id)
        state, versions = found.state(*key), found.versions_of(*key)
        stored = {version["md5"] for version in versions}
        wrong = [f"lost: serial {s}" for m, s in self.acknowledged.items() if m not in stored]
        wrong += [f"nobody sent {m}" for m in stored - self.sent.keys()]
        answer = self._read()
        if answer.status == 404:
            return wrong + (["404"] if stored else [])
        if answer.status != 200 or md5(answer.body) not in self.sent:
            return [*wrong, f"GET: {answer.status}, {len(answer.body)} bytes that nobody sent"]
        serial = json.loads(answer.body)["serial"]
        if serial < max(self.acknowledged.values(), default=0):
            wrong.append(f"the current serial {serial} is older than what was acknowledged")
        if state is None or md5(answer.body) != state["md5"]:
            wrong.append("the record speaks of other bytes")
        return wrong + self._broken_locks(None if state is None else state["lock_id"])

    def _read(self) -> Answer:
        """Read the state; repeat while a worker reconnects to its database."""
        answers: list[Answer] = []

        def answered() -> bool:
            answers.append(self.backend.get())
            return answers[-1].status != 503

        wait_until(answered)
        return answers[-1]

    def _broken_locks(self, lock_id: uuid.UUID | None) -> list[str]:
        if self.lock_held and str(lock_id) != self.lock_held:
            return [f"{self.lock_held} was granted and is lost; now {lock_id}"]
        if lock_id and str(lock_id) not in self.locks_sent - self.locks_released:
            return [f"nobody holds {lock_id}"]
        return []


class Traffic:
    """States, each with clients of a single habit, in threads."""

    def __init__(self, server: LiveServer, token: str) -> None:
        habits = (self.push_under_lock, self.push_freely)
        # Each habit with a state of its own, and with a state that three clients share.
        self.plan: list[tuple[Callable[[Ledger], None], Ledger]] = []
        for habit, clients in itertools.product(habits, (1, 3)):
            ledger = Ledger(Backend(server, token), shared=clients > 1)
            self.plan += [(habit, ledger)] * clients
        self.ledgers = [*{id(ledger): ledger for _, ledger in self.plan}.values()]
        self.server = server
        self.seen: Counter[int] = Counter()
        self.unexpected: list[str] = []
        self._persistent = False
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._mutex = threading.Lock()

    def acknowledged(self) -> int:
        """Return the number of acknowledged pushes."""
        return sum(len(ledger.acknowledged) for ledger in self.ledgers)

    def wait_until_each_has(self, more: int, seconds: float = MAX_WAIT) -> None:
        """Wait until this many more pushes to each state were acknowledged."""
        wanted = [(ledger, len(ledger.acknowledged) + more) for ledger in self.ledgers]
        wait_until(lambda: all(len(one.acknowledged) >= n for one, n in wanted), seconds)

    def start(self, *, persistent: bool = False) -> None:
        """Start the clients.

        Persistent clients repeat unanswered requests, like Terraform; other clients give up for
        good.
        """
        self._stop.clear()
        self._persistent = persistent
        self._threads = [
            threading.Thread(target=self._run, args=(habit, ledger)) for habit, ledger in self.plan
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let the clients finish their current requests."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _run(self, habit: Callable[[Ledger], None], ledger: Ledger) -> None:
        with contextlib.suppress(GoneError):
            while not self._stop.is_set():
                habit(ledger)

    def _send(self, send: Callable[[], Answer], *expected: int) -> int:
        """Return the status of the answer, unless the server is gone."""
        while True:
            try:
                answer = send()
            except (OSError, http.client.HTTPException) as error:
                raise GoneError from error
            with self._mutex:
                self.seen[answer.status] += 1
                if answer.status in expected:
                    return answer.status
                again = self._persistent and answer.status == 503
                if not again or not answer.headers["Retry-After"].isdecimal():
                    self.unexpected.append(f"{answer.status} {answer.body[:300]!r}")
                    raise GoneError
            time.sleep(0.1)

    def _push(self, ledger: Ledger, lock_id: str, *expected: int) -> bool:
        size = random.choice((100, 5_000, 200_000))
        serial = next(ledger.serials)
        body = document(serial, nonce=uuid.uuid4().hex, filler=random.randbytes(size).hex())
        ledger.sent[md5(body)] = serial
        pushed = self._send(lambda: ledger.backend.push(body, lock_id), *expected) == 200
        if pushed:
            ledger.acknowledged[md5(body)] = serial
        return pushed

    def push_freely(self, ledger: Ledger) -> None:
        """Push without a lock; clients of a shared state may overtake each other."""
        self._push(ledger, "", *((200, 409) if ledger.shared else (200,)))

    def push_under_lock(self, ledger: Ledger) -> None:
        """Lock, push a few times, unlock, like Terraform."""
        lock_id = str(uuid.uuid4())
        ledger.locks_sent.add(lock_id)
        refusals = (423,) if ledger.shared else ()
        if self._send(lambda: ledger.backend.lock(lock_id), 200, *refusals) == 423:
            self._stop.wait(0.02)
            return
        ledger.lock_held = lock_id
        for _ in range(random.randrange(1, 4)):
            self._push(ledger, lock_id, 200)
        ledger.lock_held = None  # from here on it may be locked or not
        # A repeated LOCK may find that another client already has the lock.
        refusals = (409,) if ledger.shared and self._persistent else ()
        self._send(lambda: ledger.backend.unlock(lock_id), 200, *refusals)
        ledger.locks_released.add(lock_id)

    def release_locks(self) -> None:
        """Release the locks of interrupted clients."""
        for ledger in self.ledgers:
            holder = ledger.backend.holder()
            if holder is not None:
                assert ledger.backend.unlock(holder["ID"]).status == 200
                ledger.locks_released.add(holder["ID"])
            ledger.lock_held = None
