"""Verification of the object store's configuration for the readiness check, in a thread."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from states.errors import StorageMisconfigured, StorageUnavailable
from states.keeping import storage

#: Seconds for which a result is valid, and seconds for which a request waits for a result.
_FRESH: Final = 30.0
_WAIT: Final = 1.0

_thread: Final = ThreadPoolExecutor(1, thread_name_prefix="bucket")
_started_at = 0.0
_verdict: Future[bool] | None = None


def is_store_refusing() -> bool:
    """Return within a second whether the store lacks the bucket or rejects the credentials.

    Return False if the store does not respond, because most requests do not use the store.
    """
    global _started_at, _verdict
    if not storage.is_configured():
        return False
    now, verdict = time.monotonic(), _verdict
    if verdict is None or (verdict.done() and now - _started_at > _FRESH):
        _started_at, _verdict = now, (verdict := _thread.submit(_refuses))
    try:
        return verdict.result(timeout=_WAIT)
    except TimeoutError:
        return False


def _refuses() -> bool:
    try:
        storage.find_bucket()
    except StorageMisconfigured:
        return True
    except StorageUnavailable:
        return False
    return False
