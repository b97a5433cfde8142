"""A server that falls silent: its host takes what is sent, and nothing answers.

A process that was stopped, a disk that hangs or a host that swaps keeps its connections open, and
its kernel acknowledges whatever comes: neither the limits of TCP nor those of PostgreSQL itself end
anything. So whoever waits for long asks on a new connection whether the server is there, and if
not, gives up; from then on nobody else waits, until the server answers again.
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

#: Seconds without an answer after which somebody asks whether the server is there.
PATIENCE: Final = 5.0
#: Seconds in which a server that is there lets one connect, and answers.
BOUND: Final = 2
# Seconds between two looks at the clock while psycopg waits, unless a deadline comes before.
_INTERVAL: Final = 0.1
# Seconds for which the last look holds.
_FRESH: Final = 1.0
# Seconds that others wait for a look: a server that is back answers sooner.
_MOMENT: Final = 0.1


class Watch:
    """Whether the server answers, as all threads of the process know it: one of them looks."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = {**parameters, "connect_timeout": BOUND, "autocommit": True}
        self._looking = threading.Lock()
        self._looked = 0.0
        self._is_silent = False

    def answers(self) -> bool:
        """Look whether the server answers, or wait for who looks already."""
        with self._looking:
            self._look()
        return not self._is_silent

    def suspect(self) -> None:
        """Let whoever wants a connection next look first."""
        self._is_silent, self._looked = True, 0.0

    def refuse_if_silent(self) -> None:
        """Wait for no more than a moment while the server is known to be silent.

        Raises:
            OperationalError: it is, as far as is known.
        """
        if self._is_silent and self._looking.acquire(timeout=_MOMENT):
            try:
                self._look()
            finally:
                self._looking.release()
        if self._is_silent:
            raise psycopg.OperationalError("the database does not answer")

    def _look(self) -> None:
        if self._looked and time.monotonic() - self._looked < _FRESH:
            return
        began = time.monotonic()
        try:
            with WatchedConnection.connect(**self._parameters) as connection:
                connection.limit(BOUND)
                connection.execute("SELECT 1")
            self._is_silent = False
        except psycopg.Error:  # a refusal, such as of one connection too many, is an answer
            self._is_silent = time.monotonic() - began >= BOUND
        self._looked = time.monotonic()


class WatchedConnection(psycopg.Connection[Any]):
    """A connection on which nobody waits for a silent server."""

    _longest: float | None = None
    _watch: Watch | None = None

    def limit(self, longest: float, watch: Watch | None = None) -> None:
        """Wait so many seconds for an answer, or less when the watch says that none will come."""
        self._longest, self._watch = longest, watch

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        """Wait for what a generator of psycopg's does; all waiting but for a connection is here."""
        left = deadline.remaining()
        if self._longest is not None or left < math.inf:
            gen = self._impatient(gen, math.inf if self._longest is None else self._longest)
        if left < _INTERVAL:
            kwargs["interval"] = max(left, 0.0)
        return super().wait(gen, *args, **kwargs)

    def _impatient(self, gen: Generator[Any, Any, Any], longest: float) -> Generator[Any, Any, Any]:
        """Do the same, and look at the clock whenever psycopg says that nothing has come."""
        heard = asked = time.monotonic()
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready:
                    heard = asked = time.monotonic()
                elif time.monotonic() - heard >= longest or deadline.remaining() <= 0:
                    self._give_up()
                elif self._watch and time.monotonic() - asked >= PATIENCE:
                    if not self._watch.answers():
                        self._give_up()
                    asked = time.monotonic()
                state = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _give_up(self) -> None:
        self.close()
        raise psycopg.OperationalError("the database does not answer")
