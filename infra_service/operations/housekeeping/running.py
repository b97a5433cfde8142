"""Doing a part: alone, within its time, and with a note of how it went."""

from __future__ import annotations

import contextlib
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from django.db import Error as DatabaseFailure

from infra_service.models import HousekeepingPart
from infra_service.operations.housekeeping.parts import PARTS, is_archived_elsewhere

if TYPE_CHECKING:
    import threading

#: Well below the lease.
_NOTE_SECONDS: Final = 60

log = structlog.get_logger("infra_service.housekeeping")


class Status(StrEnum):
    """How a part ended."""

    DONE = "done"
    # The time was over, or somebody ended the run; the next one goes on.
    STOPPED = "stopped"
    # Another process does it.
    HELD = "held"
    FAILED = "failed"


class Outcome(NamedTuple):
    """How a part ended, and what it removed."""

    status: Status
    removed: int = 0
    seconds: float = 0.0
    error: str = ""


def run_part(name: str, *, most_seconds: float, stop: threading.Event) -> Outcome:
    """Do a part until it is done, its time is over or somebody stops it; never raise.

    A process that is killed holds the part until its lease ends; what it has removed is removed,
    and the next run removes the rest.
    """
    began, removed = time.monotonic(), 0
    holder = None
    try:
        if name == "events" and is_archived_elsewhere():
            return Outcome(Status.HELD)
        holder = HousekeepingPart.objects.take(name)
        if holder is None:
            return Outcome(Status.HELD)
        status = Status.DONE
        noted = began
        for number in PARTS[name]():
            removed += number
            now = time.monotonic()
            # What looks at much and removes little is not to write each time.
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
            with contextlib.suppress(DatabaseFailure):  # then the lease ends by itself
                HousekeepingPart.objects.release(name, holder, seconds, is_done=False)
        return Outcome(Status.FAILED, removed, seconds, f"{type(error).__name__}: {error}")
