"""Faults of the object store, with retries of faults that may be temporary.

A store may not yet return an object that was just written, and a proxy or a failing disk may change
bytes. An object is therefore fetched several times. If the fault persists, a missing object, a
damaged object and an inconsistent store are different errors with different remedies.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Final

import structlog

from states import metrics
from states.errors import DocumentDamaged, DocumentMissing, DocumentUnreadable, StorageInconsistent

if TYPE_CHECKING:
    from states.keeping.storage import Fetched

log = structlog.get_logger("states.storage")

#: Seconds before each retry. The first retry is immediate, because the object was usually moved and
#: the row already contains the new name.
PAUSES: Final = (0.0, 0.1, 0.3, 0.6)


class StorageFaults:
    """The faults of the object store while it returns a document."""

    def __init__(self) -> None:
        self._object_name = ""
        self._attempts = 0
        self._digests: set[bytes] = set()

    def object_missing(self, name: str) -> None:
        """Count a missing object, and wait for the next attempt.

        Raises:
            DocumentMissing: the last attempt also failed.
        """
        if not self._is_other_object(name):
            _count("missing", name)
        self._wait_or_raise(DocumentMissing())

    def object_does_not_open(self, name: str, fetched: Fetched) -> None:
        """Count an object that cannot be decrypted, and wait for the next attempt.

        Raises:
            DocumentDamaged, StorageInconsistent: the last attempt also failed.
        """
        self._is_other_object(name)
        self._digests.add(hashlib.sha256(fetched.content).digest())
        is_damaged = fetched.is_consistent and len(self._digests) == 1
        _count("damaged" if is_damaged else "altered", name)
        self._wait_or_raise(DocumentDamaged() if is_damaged else StorageInconsistent())

    def _is_other_object(self, name: str) -> bool:
        if name == self._object_name:
            return False
        self._object_name, self._attempts, self._digests = name, 0, set()
        return True

    def _wait_or_raise(self, error: DocumentUnreadable) -> None:
        if self._attempts == len(PAUSES):
            raise error
        time.sleep(PAUSES[self._attempts])
        self._attempts += 1


def _count(fault: str, name: str) -> None:
    metrics.STORAGE_FAULTS.labels(fault).inc()
    log.warning("storage_fault", fault=fault, object=name)
