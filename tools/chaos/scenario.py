"""Run a scenario: clients push while a fault occurs, and the promises are checked."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.e2e.traffic import md5
from tests.support.waiting import wait_until
from tools.chaos import revocation
from tools.chaos.client import ChaosTraffic
from tools.chaos.report import Outcome, table
from tools.chaos.service import Front, reason_of

_SCOPES = ("state:read", "state:write", "state:admin")


@dataclass
class Course:
    """A running scenario. ``back`` is the time when the fault ended."""

    front: Front
    traffic: ChaosTraffic
    outcome: Outcome
    back: float = 0.0
    deaf: int = 0
    _probing: threading.Event = field(default_factory=threading.Event)

    def is_back(self) -> None:
        """Record that the fault is over."""
        self.back = time.monotonic()

    def wait_for_pushes(self, more: int = 1, seconds: float = 60) -> None:
        """Wait for more acknowledged pushes of each state, or record a broken promise."""
        try:
            self.traffic.wait_until_each_has(more, seconds)
        except AssertionError:
            self.outcome.broken.append(f"not every state had {more} more pushes in {seconds:.0f} s")

    def slowest_whoami(self, seconds: float) -> str:
        """Repeat ``whoami`` for ``seconds``, and return the longest duration."""
        slowest, deadline = 0.0, time.monotonic() + seconds
        token = self.traffic.plan[0][1].backend.token
        while (started := time.monotonic()) < deadline:
            if (status := self.front.request("GET", "/v1/whoami", token=token).status) != 200:
                self.outcome.broken.append(f"whoami returned {status}")
            slowest = max(slowest, time.monotonic() - started)
            time.sleep(0.02)
        return f"{slowest * 1000:.0f} ms"

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Read a pushed state repeatedly during the block."""
        end = threading.Event()
        reader = threading.Thread(target=self._read, args=(end,))
        reader.start()
        try:
            yield
        finally:
            end.set()
            reader.join()

    def _read(self, end: threading.Event) -> None:
        ledger, seen = self.traffic.ledgers[0], Counter[str]()
        while not end.wait(0.05):
            answer = ledger.backend.get()
            seen[f"{answer.status}{' ' + reason_of(answer) if answer.status != 200 else ''}"] += 1
            if answer.status == 200 and md5(answer.body) not in ledger.sent:
                self.outcome.broken.append("a read returned bytes that no client sent")
        self.outcome.figures["reads"] = dict(seen)

    def probe(self) -> None:
        """Check every second whether all instances are alive."""
        while not self._probing.wait(1):
            self.deaf += not self.front.is_alive()


@contextlib.contextmanager
def course(name: str, front: Front, *, probing: bool = True) -> Iterator[Course]:
    """Run the clients during the block, and then check the promises."""
    traffic = ChaosTraffic(front, front.token(*_SCOPES))
    this = Course(front, traffic, Outcome(name))
    before = front.answers_in_logs()
    traffic.start(persistent=True)
    prober = threading.Thread(target=this.probe)
    if probing:
        prober.start()
    try:
        this.wait_for_pushes(2)
        yield this
    finally:
        this._probing.set()
        traffic.stop()
        if probing:
            prober.join()
    outcome = this.outcome
    outcome.statuses, outcome.reasons = traffic.seen, traffic.history.reasons
    try:
        _compare(this)
    except (AssertionError, OSError, http.client.HTTPException) as error:
        outcome.broken.append(f"the service did not recover: {error!r}")
    outcome.statuses[500] = 0
    outcome.broken += front.exceptions_in_logs()
    for (path, status, _), n in (front.answers_in_logs() - before).items():
        if status == 500:
            outcome.statuses[500] += n
        if path.startswith("/healthz"):
            outcome.broken.append(f"{n} responses with {status} from /healthz")
    if this.deaf:
        outcome.broken.append(f"/healthz did not respond within 1 s, {this.deaf} times")
    print(table([outcome]), flush=True)  # the other scenarios may take long


def _compare(this: Course) -> None:
    outcome, traffic = this.outcome, this.traffic
    outcome.acknowledged = traffic.acknowledged()
    wait_until(lambda: this.front.request("GET", "/readyz").status == 200, 60)
    outcome.figures["slowest"] = f"{traffic.history.slowest:.1f} s"
    outcome.figures["longest gap between pushes"] = f"{traffic.history.longest_gap():.1f} s"
    if this.back:
        outcome.back_after = traffic.history.first_push_after(this.back)
    # The outcome of an aborted client's last request is unknown.
    for ledger in traffic.ledgers:
        ledger.lock_held = None if traffic.given_up else ledger.lock_held
    outcome.broken += traffic.unexpected + traffic.broken_promises()
    outcome.broken += revocation.broken_promises(this.front)
