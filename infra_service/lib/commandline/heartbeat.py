"""The heartbeat of a long-running command: a file that its loops renew while they progress.

A probe reads the file's modification time (docs/how-to/monitor.md). The loops renew the file
themselves, without a separate thread, so that a hanging loop stops the heartbeat.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog
from django.core.management.base import CommandError

from infra_service.lib.error_text import reason_of

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterable

#: The minimum time between renewals, and the maximum time without a renewal during a wait, in
#: seconds.
_RENEW_EVERY: Final = 1.0
_WAIT: Final = 2.0

log = structlog.get_logger("infra_service.commands")


def add_heartbeat_option(parser: ArgumentParser) -> None:
    """Add ``--heartbeat-file``."""
    parser.add_argument(
        "--heartbeat-file",
        metavar="F",
        help="with --watch: update the modification time of this file while the work progresses",
    )


class Heartbeat:
    """The heartbeat of a process, renewed whenever each of its loops has completed an iteration.

    The heartbeat also notifies systemd if the unit sets ``WatchdogSec``.
    """

    def __init__(self, file: str | None, loops: Iterable[str] = ("",)) -> None:
        """Create the heartbeat file. Without ``file``, notify only systemd.

        Raises:
            CommandError: the file cannot be written, or systemd cannot be notified.
        """
        self._file = None if file is None else Path(file)
        self._loops = set(loops)
        self._awaited = set(self._loops)
        self._next = 0.0
        self._is_failing = False
        self._guard = threading.Lock()
        self._renew()

    def beat(self, loop: str = "") -> None:
        """Record an iteration of a loop."""
        with self._guard:
            self._awaited.discard(loop)
            self._renew_if_due()

    def end(self, loop: str) -> None:
        """Exclude a finished loop from the heartbeat."""
        with self._guard:
            self._loops.discard(loop)
            self._awaited.discard(loop)
            self._renew_if_due()

    def _renew_if_due(self) -> None:
        now = time.monotonic()
        if not self._awaited and now >= self._next:
            self._next = now + _RENEW_EVERY
            self._awaited = set(self._loops)
            try:
                self._renew()
            except CommandError as error:
                # The loops continue. If the failure persists, the probe or the watchdog restarts
                # the process.
                if not self._is_failing:
                    log.warning("heartbeat_failed", error=str(error))
                self._is_failing = True
            else:
                self._is_failing = False

    def _renew(self) -> None:
        try:
            if self._file is not None:
                self._file.touch()
        except OSError as error:
            raise CommandError(f"--heartbeat-file cannot be written: {reason_of(error)}") from error
        if address := os.environ.get("NOTIFY_SOCKET"):
            # See sd_notify(3). A leading @ denotes an abstract address.
            name = f"\0{address[1:]}" if address.startswith("@") else address
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier:
                    notifier.settimeout(_WAIT)
                    notifier.sendto(b"WATCHDOG=1", name)
            except OSError as error:
                raise CommandError(
                    f"NOTIFY_SOCKET {address} cannot be notified: {reason_of(error)}"
                ) from error


class BeatingEvent(threading.Event):
    """The stop event of a loop. Each check of the event renews the heartbeat."""

    def __init__(self, heartbeat: Heartbeat) -> None:
        super().__init__()
        self._heartbeat = heartbeat

    def is_set(self) -> bool:
        self._heartbeat.beat()
        return super().is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait like `threading.Event`, and renew the heartbeat during long waits."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            self._heartbeat.beat()
            left = _WAIT if until is None else until - time.monotonic()
            if super().wait(max(0.0, min(_WAIT, left))):
                return True
            if until is not None and time.monotonic() >= until:
                return False
