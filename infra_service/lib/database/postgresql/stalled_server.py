"""Detect a stalled server: its host accepts data, but the server does not respond.

A host with a stopped process, a hanging disk or heavy swapping keeps its connections open, and its
kernel acknowledges all data, so that the timeouts of TCP and PostgreSQL do not apply. After a long
wait, a thread tests the server on a new connection, and fails if the server does not respond. From
then on, all threads fail immediately until the server responds again.
"""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import psycopg

from infra_service.lib.database import deadline

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

#: The seconds without a response after which the server is tested.
TIMEOUT: Final = 5.0
#: The seconds within which a healthy server accepts a connection and responds.
BOUND: Final = 2
# The seconds between checks of the time while psycopg waits, unless a deadline is earlier.
_INTERVAL: Final = 0.1
# The seconds for which a test result is valid.
_FRESH: Final = 1.0
# The seconds that other threads wait for a test. A recovered server responds sooner.
_MOMENT: Final = 0.1


class Watch:
    """The status of a server, which threads share. One thread at a time tests the server."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = {**parameters, "connect_timeout": BOUND, "autocommit": True}
        self._check_lock = threading.Lock()
        self._checked_at = 0.0
        self._is_silent = False

    def answers(self) -> bool:
        """Test whether the server responds, or wait for a running test."""
        with self._check_lock:
            self._check_server()
        return not self._is_silent

    def suspect(self) -> None:
        """Require a test before the next connection."""
        self._is_silent, self._checked_at = True, 0.0

    def refuse_if_silent(self) -> None:
        """Raise an error, after a short wait, while the server is known to be stalled.

        Raises:
            OperationalError: the server is stalled, according to the last test.
        """
        if self._is_silent and self._check_lock.acquire(timeout=_MOMENT):
            try:
                self._check_server()
            finally:
                self._check_lock.release()
        if self._is_silent:
            raise psycopg.OperationalError("the database does not respond")

    def _check_server(self) -> None:
        if self._checked_at and time.monotonic() - self._checked_at < _FRESH:
            return
        began = time.monotonic()
        try:
            with WatchedConnection.connect(**self._parameters) as connection:
                connection.limit(BOUND)
                connection.execute("SELECT 1")
            self._is_silent = False
        except psycopg.Error:  # a rejection, for example of too many connections, is a response
            self._is_silent = time.monotonic() - began >= BOUND
        self._checked_at = time.monotonic()


class WatchedConnection(psycopg.Connection[Any]):
    """A connection that stops waiting for a stalled server."""

    _longest: float | None = None
    _watch: Watch | None = None

    def limit(self, longest: float, watch: Watch | None = None) -> None:
        """Limit the wait for a response in seconds, or until the watch detects a stalled server."""
        self._longest, self._watch = longest, watch

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        """Wait for a generator of psycopg.

        Every wait calls this method, except the wait for a new connection.
        """
        left = deadline.remaining()
        if self._longest is not None or left < math.inf:
            gen = self._run_within_limits(gen, math.inf if self._longest is None else self._longest)
        if left < _INTERVAL:
            kwargs["interval"] = max(left, 0.0)
        return super().wait(gen, *args, **kwargs)

    def _run_within_limits(
        self, gen: Generator[Any, Any, Any], longest: float
    ) -> Generator[Any, Any, Any]:
        """Run the generator, and check the limits whenever a wait ends without data."""
        last_data = last_check = time.monotonic()
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready:
                    last_data = last_check = time.monotonic()
                elif time.monotonic() - last_data >= longest or deadline.remaining() <= 0:
                    self._fail_silent()
                elif self._watch and time.monotonic() - last_check >= TIMEOUT:
                    if not self._watch.answers():
                        self._fail_silent()
                    last_check = time.monotonic()
                state = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _fail_silent(self) -> None:
        self.close()
        raise psycopg.OperationalError("the database does not respond")
