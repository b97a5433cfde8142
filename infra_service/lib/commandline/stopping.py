"""Commands that run until they are stopped."""

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
    """Let SIGTERM and ``^C`` call ``stop``, which has the block end where it may.

    A second ``^C`` interrupts it where it is.

    Raises:
        KeyboardInterrupt: it was ``^C``, and the block has ended.
    """
    interrupts = []

    def handle(number: int, _frame: object) -> None:
        if number == signal.SIGINT:
            interrupts.append(number)
            signal.signal(signal.SIGINT, signal.default_int_handler)

    # A handler runs in the main thread, not before its wait ends if that began as the signal came.
    # And it interrupts that thread, which may hold a lock that `stop` takes. So `stop` runs in a
    # thread of its own, which the signal wakes through a socket.
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
    """Set the event when standard input ends, which is a pipe of the process to end with."""
    threading.Thread(target=_wait_for_eof, args=(stop,), daemon=True).start()


def _wait_for_eof(stop: threading.Event) -> None:
    # Not by sys.stdin: a thread that waits in there keeps the process from ending.
    while os.read(0, 1024):
        pass
    stop.set()
