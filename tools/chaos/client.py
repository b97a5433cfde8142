"""Clients that continue through any fault, and record the acknowledged requests.

They extend the clients in tests/e2e/traffic.py, and repeat requests without a response for the
duration of the scenario, as Terraform does.
"""

from __future__ import annotations

import http.client
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from tests.e2e.database import contradictions, snapshot
from tests.e2e.traffic import GoneError, Ledger, Traffic
from tests.support.server import Answer
from tools.chaos.service import Front, reason_of

#: The statuses after which a client repeats a request: the service requests a retry, or the proxy
#: has not reached the service. Terraform also repeats a request after a 500.
_REPEATED = {500, 502, 503, 504}


@dataclass
class Seen:
    """The observations of clients. Times are from ``time.monotonic``."""

    reasons: Counter[tuple[int, str]] = field(default_factory=Counter)
    pushes: list[float] = field(default_factory=list)
    slowest: float = 0.0

    def first_push_after(self, moment: float) -> float | None:
        """Return the seconds from ``moment`` to the next acknowledged push, or None."""
        later = [pushed - moment for pushed in self.pushes if pushed > moment]
        return round(min(later), 1) if later else None

    def longest_gap(self) -> float:
        """Return the longest time between two acknowledged pushes of any client."""
        return max((b - a for a, b in pairwise(sorted(self.pushes))), default=0.0)


class ChaosTraffic(Traffic):
    """Eight clients that use four states through the proxy."""

    def __init__(self, front: Front, token: str) -> None:
        super().__init__(front, token)
        self.front = front
        self.history = Seen()
        self.given_up = 0

    def _send(self, send: Callable[[], Answer], *expected: int) -> int:
        is_repeated = False
        while True:
            started = time.monotonic()
            answer: Answer | None = None
            try:
                answer = send()
            except (OSError, http.client.HTTPException) as error:
                status, reason = 0, f"(no answer: {type(error).__name__})"
            else:
                status, reason = answer.status, ""
                if status >= 500:
                    reason = reason_of(answer)
            ended = time.monotonic()
            with self._mutex:
                self.seen[status] += 1
                self.history.slowest = max(self.history.slowest, ended - started)
                if reason:
                    self.history.reasons[status, reason] += 1
                if status in expected:
                    return status
                if answer is not None and status not in _REPEATED:
                    self.unexpected.append(f"{status} {answer.body[:300]!r}, again: {is_repeated}")
                    raise GoneError
            if self._stop.is_set():
                self.given_up += 1
                raise GoneError
            is_repeated = True
            time.sleep(0.1)

    def _push(self, ledger: Ledger, lock_id: str, *expected: int) -> bool:
        pushed = super()._push(ledger, lock_id, *expected)
        if pushed:
            with self._mutex:
                self.history.pushes.append(time.monotonic())
        return pushed

    def broken_promises(self) -> list[str]:
        """Return differences between the database and the clients' acknowledged requests.

        The clients must have stopped.
        """
        found = snapshot(self.front)
        wrong = contradictions(self.front, found)
        for ledger in self.ledgers:
            wrong += ledger.broken_promises(found)
            wrong += _out_of_order(ledger, found.versions_of(*_key(ledger)))
        return wrong


def _key(ledger: Ledger) -> tuple[uuid.UUID, uuid.UUID]:
    return ledger.backend.component_id, ledger.backend.environment_id


def _out_of_order(ledger: Ledger, versions: list[dict[str, object]]) -> list[str]:
    """Return an error if the pushes of a client were stored in the wrong order."""
    if ledger.shared:
        return []
    stored = [ledger.sent[str(v["md5"])] for v in versions if v["md5"] in ledger.sent]
    return [] if stored == sorted(stored) else [f"pushes are stored in the order {stored}"]
