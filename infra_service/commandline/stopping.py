"""Commands that go on until somebody stops them."""

from __future__ import annotations

import signal
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
        # Not here: this interrupts the main thread, which may hold a lock that it takes.
        threading.Thread(target=stop).start()

    handlers = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if interrupts:
        raise KeyboardInterrupt
