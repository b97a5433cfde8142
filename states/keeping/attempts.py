"""Passes over many states or documents that continue after the failure of an item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog
from django.db import InterfaceError, OperationalError

from states.errors import DocumentUnreadable, StorageUnavailable
from states.keeping import storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

#: Items in a row for which the object store or the database failed, after which a run stops unless
#: the store itself answers: each of them may take as long as the client waits.
OUTAGE: Final = 3
UNEXPECTED: Final = "An unexpected error; the log has its traceback."

log = structlog.get_logger("states.keeping")


class IncompleteError(Exception):
    """Some items of a pass failed; all others are done."""

    def __init__(self, failed: int) -> None:
        super().__init__(f"{failed} failed, and the rest succeeded; the log has their ids")


class Attempts:
    """Count failed items of a run; an unavailable database or store stops the run."""

    def __init__(self) -> None:
        self._unanswered = self._failed = 0

    def run(self, work: Callable[[], T], **item: Any) -> tuple[T | None, str]:
        """Return the result of the work on an item, and the problem if it failed.

        The log names the item with its problem, and contains the traceback of an unexpected error.

        Raises:
            StorageUnavailable, InterfaceError, OperationalError: the database failed for several
                items in a row; or the object store did, and its bucket does not respond either.
        """
        try:
            result = work()
        except (StorageUnavailable, InterfaceError, OperationalError) as error:
            self._unanswered += 1
            if self._unanswered == OUTAGE:
                if not isinstance(error, StorageUnavailable):
                    raise
                # Objects that the store cannot read must not stop every pass before the others.
                storage.find_bucket()
                self._unanswered = 0
            problem = str(error)
        except DocumentUnreadable as error:
            self._unanswered, problem = 0, str(error.detail)
        except Exception:
            self._unanswered, problem = 0, UNEXPECTED
            log.exception("item_failed", **item)
        else:
            self._unanswered = 0
            return result, ""
        self._failed += 1
        if problem != UNEXPECTED:
            log.warning("item_failed", problem=problem, **item)
        return None, problem

    def each(self, results: Iterator[T], **item: Any) -> Iterator[T]:
        """Yield the results of the work on an item until it ends or fails.

        Raises:
            StorageUnavailable, InterfaceError, OperationalError: see ``run``.
        """
        while True:
            result, _problem = self.run(lambda: next(results, None), **item)
            if result is None:
                return
            yield result

    def finish(self) -> None:
        """End the run.

        Raises:
            IncompleteError: an item failed.
        """
        if self._failed:
            raise IncompleteError(self._failed)
