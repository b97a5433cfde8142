"""Deliver events: the main thread uses the database, and worker threads send messages."""

from __future__ import annotations

import math
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Final

from infra_service.lib.commandline.isolation import isolated
from infra_service.webhooks import audit_reader, publishing, queue, sending
from infra_service.webhooks.fair_share import THREADS, FairShare
from infra_service.webhooks.health_changes import publish_health_changes
from infra_service.webhooks.queue import Attempt
from infra_service.webhooks.scheduled_events import publish_timed
from infra_service.webhooks.subscriptions import reaches

if TYPE_CHECKING:
    import threading
    import uuid
    from collections.abc import Callable

    from infra_service.webhooks.models import Delivery
    from infra_service.webhooks.sending import Outcome
    from infra_service.webhooks.subscriptions import Reach

#: Seconds between two searches for deliveries of expired endpoints and for scheduled events.
_SWEEP_EVERY: Final = 30.0
#: Seconds that a pass waits for responses, and between two reads of the audit log under load.
_WAIT: Final = 0.25
#: Seconds for which the loaded endpoints and their grants are reused.
_FRESH: Final = 1.0
#: Seconds to collect more responses after the first, so that a transaction records several.
_GATHER: Final = 0.01


class Deliverer:
    """A loop that publishes events of the audit log as deliveries, and sends due deliveries."""

    def __init__(self, stop: threading.Event, attempted: Callable[[Attempt], None]) -> None:
        self._stop, self._attempted = stop, attempted
        self._running: dict[Future[Outcome], Delivery] = {}
        self._share = FairShare()
        self._reached: dict[uuid.UUID, Reach] = {}
        self._read_at = self._looked_at = self._swept_at = -math.inf

    def run(self, interval: float | None) -> None:
        """Repeat passes until nothing is due or, with an interval, until the stop event is set.

        At the end, wait for attempts in progress and record them.
        """
        audit_reader.begin()
        with ThreadPoolExecutor(THREADS, thread_name_prefix="sending") as pool:
            try:
                while not self._stop.is_set():
                    if self._pass(pool) or self._running:
                        continue
                    if interval is None:
                        break
                    self._stop.wait(interval)
            finally:
                self._collect(timeout=None)

    def _pass(self, pool: ThreadPoolExecutor) -> bool:
        """Process one batch of each step, and return whether there was any work.

        Each step is isolated, so that a failure does not delay the next steps.
        """
        now = time.monotonic()
        published = started = ended = 0
        # 1. Read new events of the audit log, and insert a delivery for each subscribed webhook.
        if now - self._looked_at >= _WAIT:
            with isolated("publish events"):
                published = publishing.publish_next()
            # After a batch, there may be more events.
            self._looked_at = -math.inf if published else now
        is_time_to_sweep = now - self._swept_at >= _SWEEP_EVERY
        # 2. Load the webhooks, because a published event may be for a new webhook.
        if published or now - self._read_at >= _FRESH:
            self._reached, self._read_at = reaches(), now
            self._share.forget_others(self._reached)
        # 3. Fail deliveries of expired and disabled webhooks, and publish scheduled events.
        if is_time_to_sweep:
            self._swept_at = now
            published += self._sweep()
        # 4. Claim due deliveries by conditional updates and send them in threads.
        with isolated("start deliveries"):
            started = self._start(pool)
        # 5. Record the responses.
        with isolated("collect answers"):
            ended = self._collect(timeout=0 if published or started else _WAIT)
        is_idle = not (published or started or ended)
        if is_idle:
            self._looked_at = -math.inf  # the next pass reads the audit log immediately
        return not is_idle

    def _sweep(self) -> int:
        """Repair and fail waiting deliveries, and publish scheduled events.

        Return the number of new events.
        """
        published = 0
        with isolated("repair the times of deliveries"):
            queue.repair_times()
        with isolated("fail deliveries of expired endpoints"):
            queue.fail_undeliverable()
        for publish in (publish_timed, publish_health_changes):
            with isolated("publish scheduled events"):
                published += publish()
        return published

    def _start(self, pool: ThreadPoolExecutor) -> int:
        started = 0
        for is_slow, is_first in ((False, True), (True, True), (False, False)):
            most, room = self._share.room(self._reached, is_slow=is_slow, is_first=is_first)
            for delivery in queue.claim(room, most):
                reach = self._reached[delivery.endpoint_id]
                future = pool.submit(sending.attempt, delivery, reach)
                self._running[future] = delivery
                self._share.start(future, delivery.endpoint_id)
                started += 1
        return started

    def _collect(self, timeout: float | None) -> int:
        """Record finished attempts. With ``timeout=None``, wait for all attempts."""
        if not self._running:
            return 0
        until = FIRST_COMPLETED if timeout is not None else "ALL_COMPLETED"
        over, others = wait(self._running, timeout, until)
        if over and others:
            over, _ = wait(self._running, _GATHER)
        attempts = [Attempt(self._running.pop(one), one.result()) for one in over]
        for future in over:
            outcome = future.result()
            is_success = None if outcome.is_withheld else outcome.is_success
            self._share.finish(future, is_success=is_success)
        if attempts:
            queue.note(attempts)
        for attempt in attempts:
            if not attempt.outcome.is_withheld:
                self._attempted(attempt)
        return len(attempts)
