"""Random concurrent operations on a few states, by many clients."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.backend import Backend, document
from tests.e2e.history import History
from tests.e2e.traffic import md5
from tests.support.installation import ROOT
from tests.support.server import Answer, LiveServer

_LOOP = """
import io, select, sys, django
django.setup()
from django.core.management import call_command
print("ready", flush=True)
sys.stdin.readline()
over, runs = False, 0
while not over:
    for command in sys.argv[1:]:
        call_command(*command.split(), stdout=io.StringIO(), stderr=io.StringIO())
        runs += 1
    over = bool(select.select([sys.stdin], [], [], 0)[0])
print(runs)
"""
_MAX_WAIT_SECONDS = 120

_APPENDING = ("state.push", "state.restore")


class Repeated:
    """Management commands that run repeatedly in a separate process."""

    def __init__(self, server: LiveServer, *commands: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LOOP, *commands],
            cwd=ROOT,
            env={**server.environment, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def begin(self) -> None:
        """Run them until the result is requested, at least once."""
        assert self.process.stdin is not None
        self.process.stdin.write("begin\n")
        self.process.stdin.flush()

    def runs(self) -> int:
        """Stop them; return the number of runs."""
        out, _ = self.process.communicate(timeout=120)
        return int(out)


@dataclass
class Storm:
    """Clients of some states, and their acknowledged requests."""

    backends: list[Backend]
    seed: int
    histories: dict[uuid.UUID, History] = field(default_factory=dict)
    serials: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    acknowledged: dict[uuid.UUID, set[str]] = field(default_factory=dict)
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """Push to each state, and remember the address of its history."""
        for backend in self.backends:
            self.push_unlocked(backend, random.Random(self.seed))
            self.histories[backend.component_id] = History(backend)

    def history(self, backend: Backend) -> History:
        return self.histories[backend.component_id]

    def lacking(self) -> set[str]:
        """Return the operations that no client has completed yet."""
        wanted = {"push", "push under lock", "restore", "read", "delete", "undelete"}
        with self.guard:
            return wanted - {action for action, status in self.answers if status < 300}

    def run(self, seconds: float) -> None:
        """Run all operations, from several threads, for this long.

        A slow machine gets the time to complete each operation once.
        """
        actions = [self.push_locked, self.push_unlocked, self.restore, self.read, self.break_lock]
        weights = [*actions, *actions, self.push_locked, self.push_unlocked, self.delete_and_back]

        end = time.monotonic() + seconds

        def goes_on() -> bool:
            late = time.monotonic() - end
            return late < 0 or (late < _MAX_WAIT_SECONDS and bool(self.lacking()))

        def client(number: int) -> None:
            rng = random.Random(self.seed + number)
            while goes_on():
                rng.choice(weights)(rng.choice(self.backends), rng)

        threads = [threading.Thread(target=self._watched, args=(client, n)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _watched(self, work: Callable[[int], None], number: int) -> None:
        try:
            work(number)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test is to fail of it
            self.wrong.append(repr(error))

    def note(self, action: str, answer: Answer, backend: Backend, stored: str = "") -> bool:
        """Count the answer and record its promise; return whether it was a success."""
        good = answer.status in (200, 204)
        with self.guard:
            self.answers[action, answer.status] += 1
            if good and stored:
                self.acknowledged.setdefault(backend.component_id, set()).add(stored)
            if answer.status not in (200, 204, 404, 409, 423, 503):
                self.wrong.append(f"{action}: {answer.status} {answer.body[:300]!r}")
        return good

    def _body(self, rng: random.Random) -> bytes:
        noise = rng.randbytes(rng.choice((10, 1000, 60_000))).hex()
        return document(next(self.serials), noise=noise, once=str(uuid.uuid4()))

    def push_unlocked(self, backend: Backend, rng: random.Random) -> None:
        body = self._body(rng)
        self.note("push", backend.push(body), backend, md5(body))

    def push_locked(self, backend: Backend, rng: random.Random) -> None:
        lock = str(uuid.uuid4())
        if self.note("lock", backend.lock(lock), backend):
            body = self._body(rng)
            self.note("push under lock", backend.push(body, lock), backend, md5(body))
            self.note("unlock", backend.unlock(lock), backend)

    def break_lock(self, backend: Backend, rng: random.Random) -> None:  # noqa: ARG002 - a deed
        answer = self.history(backend).call(":force-unlock", reason="chaos")
        self.note("force-unlock", answer, backend)

    def delete_and_back(self, backend: Backend, rng: random.Random) -> None:  # noqa: ARG002 - a deed
        history = self.history(backend)
        answer = backend.server.request("DELETE", history.root, token=backend.token)
        if self.note("delete", answer, backend):
            while not self.note("undelete", history.call(":undelete"), backend):
                time.sleep(0.01)

    def restore(self, backend: Backend, rng: random.Random) -> None:
        history = self.history(backend)
        versions = history.versions()
        if versions:
            number = rng.choice(versions)["number"]
            answer = history.call(f"/versions/{number}:restore")
            stored = answer.json()["version"]["md5"] if answer.status == 200 else ""
            self.note("restore", answer, backend, stored)

    def read(self, backend: Backend, rng: random.Random) -> None:
        history = self.history(backend)
        versions = history.versions()
        if versions:
            version = rng.choice(versions)
            answer = history.document(version["number"])
            if self.note("read", answer, backend) and md5(answer.body) != version["md5"]:
                self.wrong.append(f"altered: {version}")

    def broken_promises(self, kept: int) -> list[str]:
        """Compare each state's history with the acknowledged requests and with the audit log."""
        server = self.backends[0].server
        (dumped,) = server.run_commands(("dumpdata", "apikeys.auditevent"))
        events = json.loads(dumped)
        return [wrong for b in self.backends for wrong in self._broken_promises(b, events, kept)]

    def _broken_promises(self, backend: Backend, events: list[Any], kept: int) -> list[str]:
        history = self.history(backend)
        state_id = history.root.rpartition("/")[2]
        done: dict[int, str] = {}
        wrong = []
        for event in (entry["fields"] for entry in events):
            if event["resource_id"] != state_id or event["action"] not in _APPENDING:
                continue
            details = event["details"]
            if done.setdefault(details["version"], details["md5"]) != details["md5"]:
                wrong.append(f"two versions of number {details['version']}")
        promised = self.acknowledged.get(backend.component_id, set())
        wrong += [f"acknowledged and never done: {m}" for m in promised - set(done.values())]
        versions = {v["number"]: v for v in history.versions()}
        newest = max(versions)
        if sorted(done) != list(range(1, newest + 1)):
            wrong.append("the numbers have gaps")
        for number in range(max(1, newest - kept + 1), newest + 1):
            body = history.document(number).body
            if number not in versions or not md5(body) == versions[number]["md5"] == done[number]:
                wrong.append(f"missing or altered: {number}")
        if md5(backend.get().body) != done[newest]:
            wrong.append("the current document is not the newest")
        return wrong
