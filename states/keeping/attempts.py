"""Runs over many states or documents that continue after the failure of an item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog

from infra_service.lib.database.failures import is_failure, is_of_worker
from states.errors import DocumentUnreadable, StorageUnavailable
from states.keeping import storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.db import Error

T = TypeVar("T")

#: The number of consecutive failures of the database or object store after which a run stops,
#: unless the bucket, or the coordinator of Citus, responds. Each failure can take as long as the
#: client's timeout.
OUTAGE: Final = 3
UNEXPECTED: Final = "An unexpected error occurred. The log contains the traceback."

log = structlog.get_logger("states.keeping")


class IncompleteError(Exception):
    """An error after a run in which some items failed and all others succeeded."""

    def __init__(self, failed: int) -> None:
        super().__init__(f"{failed} failed, and the rest succeeded; the log lists the failures")


class Attempts:
    """The count of failed items of a run, which stops if the database or store is unavailable."""

    def __init__(self) -> None:
        self._unanswered = self._failed = 0

    def run(self, work: Callable[[], T], **item: Any) -> tuple[T | None, str]:
        """Return the result of the work on an item, or None and the problem if the work failed.

        The log records the item with its problem, and the traceback of an unexpected error.

        Raises:
            django.db.Error: the database failed for several consecutive items.
            StorageUnavailable: the object store failed for several consecutive items, and the
                bucket does not respond.
        """
        try:
            result = work()
        except DocumentUnreadable as error:
            self._unanswered, problem = 0, str(error)
        except Exception as error:
            if isinstance(error, StorageUnavailable) or is_failure(error):
                self._count_outage(error)
                problem = str(error)
            else:
                self._unanswered, problem = 0, UNEXPECTED
                log.exception("item_failed", **item)
        else:
            self._unanswered = 0
            return result, ""
        self._failed += 1
        if problem != UNEXPECTED:
            log.warning("item_failed", problem=problem, **item)
        return None, problem

    def _count_outage(self, error: StorageUnavailable | Error) -> None:
        """Raise the error if the item is the last of several consecutive items.

        A few objects that the store cannot read, or a lost worker of Citus, must not stop each run.
        """
        self._unanswered += 1
        if self._unanswered == OUTAGE:
            if isinstance(error, StorageUnavailable):
                storage.find_bucket()
            elif not is_of_worker(error):
                raise error
            self._unanswered = 0

    def each(self, results: Iterator[T], **item: Any) -> Iterator[T]:
        """Yield the results of the work on an item until the work is complete or fails.

        Raises:
            StorageUnavailable, django.db.Error: see ``run``.
        """
        while True:
            result, _problem = self.run(lambda: next(results, None), **item)
            if result is None:
                return
            yield result

    def finish(self) -> None:
        """Report the failed items at the end of the run.

        Raises:
            IncompleteError: an item failed.
        """
        if self._failed:
            raise IncompleteError(self._failed)
