"""Divide the threads of ``deliver_events`` so that slow receivers do not delay fast receivers."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Hashable

#: The maximum number of messages in flight per process.
THREADS: Final = 48
#: The maximum number of messages in flight to slow receivers.
_TO_SLOW: Final = 16
_TO_FAST: Final = THREADS - _TO_SLOW
#: The maximum number of messages in flight to a fast receiver. For other receivers, it is 1.
_PER_FAST_RECEIVER: Final = 8
#: Seconds after which an attempt counts as slow, even while it runs.
SLOW_AFTER: Final = 3.0


class FairShare:
    """A limiter of the messages in flight to each receiver.

    A receiver is slow from the first failed or slow attempt until a quick success. Slow receivers
    have separate threads. Each slow receiver pauses after an attempt for long enough that these
    threads suffice for all slow receivers.
    """

    def __init__(self) -> None:
        self._in_flight: dict[Hashable, tuple[uuid.UUID, float]] = {}
        self._proven: set[uuid.UUID] = set()
        # The end of each slow receiver's pause.
        self._slow: dict[uuid.UUID, float] = {}

    def start(self, attempt: Hashable, receiver: uuid.UUID) -> None:
        self._in_flight[attempt] = receiver, time.monotonic()

    def finish(self, attempt: Hashable, *, is_success: bool | None) -> None:
        """Record the end of an attempt. ``is_success`` is None if nothing was sent."""
        receiver, started = self._in_flight.pop(attempt)
        if is_success is None:
            return
        now = time.monotonic()
        seconds = now - started
        if is_success and seconds <= SLOW_AFTER:
            self._slow.pop(receiver, None)
            self._proven.add(receiver)
        else:
            self._mark_slow(receiver, now)
            self._slow[receiver] += seconds * max(0.0, len(self._slow) / _TO_SLOW - 1)

    def room(
        self, receivers: Collection[uuid.UUID], *, is_slow: bool, is_first: bool
    ) -> tuple[int, dict[uuid.UUID, int]]:
        """Return the number of messages that may start now, in total and for each receiver.

        ``is_slow`` selects slow or fast receivers. ``is_first`` limits each receiver to its first
        message in flight, so that long queues of other receivers do not delay it.
        """
        now = time.monotonic()
        for receiver, started in self._in_flight.values():
            if now - started > SLOW_AFTER and receiver not in self._slow:
                self._mark_slow(receiver, now)
        busy = Counter(receiver for receiver, _ in self._in_flight.values())
        room = {}
        for one in receivers:
            rests = bool(busy) and self._slow.get(one, now) > now
            most = 1 if is_first or one not in self._proven else _PER_FAST_RECEIVER
            if (one in self._slow) == is_slow and not rests and most > busy[one]:
                room[one] = most - busy[one]
        of_kind = sum(number for one, number in busy.items() if (one in self._slow) == is_slow)
        threads = (_TO_SLOW if is_slow else _TO_FAST) - of_kind
        return min(threads, THREADS - len(self._in_flight)), room

    def forget_others(self, receivers: Collection[uuid.UUID]) -> None:
        """Forget all receivers except these."""
        self._proven.intersection_update(receivers)
        self._slow = {one: until for one, until in self._slow.items() if one in receivers}

    def _mark_slow(self, receiver: uuid.UUID, now: float) -> None:
        self._proven.discard(receiver)
        self._slow[receiver] = now
