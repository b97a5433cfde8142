"""A thread pool that continues with its existing threads if the system refuses a new thread."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor


class ThreadPool(ThreadPoolExecutor):
    """A thread pool for which the system may refuse a thread, for example at a ``pids_limit``.

    Python would raise an error, although it has queued the work. Here, the work waits for an
    existing thread, and the next work tries to start a thread again.
    """

    def _adjust_thread_count(self) -> None:
        with contextlib.suppress(RuntimeError):  # can't start new thread
            super()._adjust_thread_count()
