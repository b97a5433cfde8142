"""Stop long-running commands on signals, or at the end of standard input."""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` on SIGTERM and ``^C``, so that the block ends at a safe point.

    A second ``^C`` interrupts the block immediately.

    Raises:
        KeyboardInterrupt: the block ended after ``^C``.
    """
    interrupts = []

    def handle(number: int, _frame: object) -> None:
        if number == signal.SIGINT:
            interrupts.append(number)
            signal.signal(signal.SIGINT, signal.default_int_handler)

    # Python runs a signal handler in the main thread, possibly only after a long wait, or while the
    # thread has a lock that `stop` requires. Therefore, `stop` runs in its own thread, which the
    # signal wakes through a socket.
    woken, waker = socket.socketpair()
    waker.settimeout(0)

    def listen() -> None:
        with woken:
            while woken.recv(1):
                stop()

    handlers = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    wakeup = signal.set_wakeup_fd(waker.fileno())
    threading.Thread(target=listen, name="stopping").start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        waker.close()
    if interrupts:
        raise KeyboardInterrupt


def stop_at_eof(stop: threading.Event) -> None:
    """Set the event at the end of standard input, such as a pipe from the parent process."""
    threading.Thread(target=_wait_for_eof, args=(stop,), daemon=True).start()


def _wait_for_eof(stop: threading.Event) -> None:
    # Do not use sys.stdin: a thread that reads from it would block the exit of the process.
    while os.read(0, 1024):
        pass
    stop.set()
