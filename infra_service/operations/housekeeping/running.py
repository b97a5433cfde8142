"""Run a part of housekeeping: exclusively, within a time limit, with a recorded result."""

from __future__ import annotations

import contextlib
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from django.db import Error as DatabaseFailure

from infra_service.lib.error_text import reason_of
from infra_service.models import HousekeepingPart
from infra_service.operations.housekeeping.parts import ELSEWHERE, PARTS

if TYPE_CHECKING:
    import threading

#: The interval at which a part that removes no rows extends its lease.
_NOTE_SECONDS: Final = 60

log = structlog.get_logger("infra_service.housekeeping")


class Status(StrEnum):
    """The outcome of a part."""

    DONE = "done"
    # The part reached its time limit or was stopped. The next run continues.
    STOPPED = "stopped"
    # Another process runs the part.
    HELD = "held"
    FAILED = "failed"


class Outcome(NamedTuple):
    """The outcome of a part, and its number of removed rows."""

    status: Status
    removed: int = 0
    seconds: float = 0.0
    error: str = ""


def run_part(name: str, *, most_seconds: float, stop: threading.Event) -> Outcome:
    """Run a part until it is done, out of time or stopped. Report failures in the outcome.

    If the process is killed, the part stays leased until the lease expires, and the next run then
    continues the part.
    """
    began, removed = time.monotonic(), 0
    holder = None
    try:
        if name in ELSEWHERE and ELSEWHERE[name]():
            return Outcome(Status.HELD)
        holder = HousekeepingPart.objects.claim(name)
        if holder is None:
            return Outcome(Status.HELD)
        status = Status.DONE
        noted = began
        for number in PARTS[name]():
            removed += number
            now = time.monotonic()
            # A part that scans much and removes little writes only once per interval.
            if number or now - noted > _NOTE_SECONDS:
                noted = now
                if not HousekeepingPart.objects.keep(name, holder, number):
                    return Outcome(Status.HELD, removed, now - began)
            if stop.is_set() or now - began > most_seconds:
                status = Status.STOPPED
                break
        seconds = time.monotonic() - began
        is_done = status is Status.DONE
        HousekeepingPart.objects.release(name, holder, seconds, is_done=is_done)
        return Outcome(status, removed, seconds)
    except Exception as error:
        seconds = time.monotonic() - began
        log.exception("housekeeping failed", part=name)
        if holder is not None:
            with contextlib.suppress(DatabaseFailure):  # the lease then expires
                HousekeepingPart.objects.release(name, holder, seconds, is_done=False)
        return Outcome(
            Status.FAILED, removed, seconds, f"{type(error).__name__}: {reason_of(error)}"
        )
