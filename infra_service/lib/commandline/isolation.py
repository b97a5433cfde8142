"""Isolate failures of single items in commands that process many items."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeVar

import structlog
from django.db import Error

from infra_service.lib.database.failures import failure_of, is_of_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")

log = structlog.get_logger("infra_service.commands")


#: The kinds of work that failed in the block of `recording_failures`.
_failures: Final[ContextVar[list[str] | None]] = ContextVar("failures", default=None)


@contextmanager
def recording_failures() -> Iterator[list[str]]:
    """Yield a list that receives the kind of work of each failed item in the block."""
    failures: list[str] = []
    token = _failures.set(failures)
    try:
        yield failures
    finally:
        _failures.reset(token)


@contextmanager
def isolated(work: str, item: object = "") -> Iterator[None]:
    """Log an exception of the block, and continue after the block.

    Raise an exception that reports a failure of the database, because all items would then fail,
    unless only a worker of Citus failed.
    """
    try:
        yield
    except Exception as error:
        _raise_failure_of_database(error)
        log.exception("item_failed", work=work, item=str(item))
        failures = _failures.get()
        if failures is not None:
            failures.append(work)


def process_isolated(work: str, items: Sequence[T], action: Callable[[Sequence[T]], None]) -> None:
    """Process all items together. If this fails, process each item separately (``isolated``).

    ``action`` must undo its changes before it raises.
    """
    try:
        action(items)
    except Exception as error:  # noqa: BLE001 - the failing item raises it again, and it is logged
        _raise_failure_of_database(error)
        for item in items:
            with isolated(work, item):
                action([item])


def _raise_failure_of_database(error: Exception) -> None:
    if isinstance(error, Error) and failure_of(error) is not None and not is_of_worker(error):
        raise error
