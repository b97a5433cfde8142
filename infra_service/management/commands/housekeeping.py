"""Remove what need not be kept."""

from __future__ import annotations

import json
import signal
import threading
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError
from django.db import connection

from apikeys.management.base import ServiceCommand
from infra_service.housekeeping import PARTS, run_part

if TYPE_CHECKING:
    from argparse import ArgumentParser

_HOUR: Final = 60 * 60


class Command(ServiceCommand):
    """Do all parts of housekeeping, or one, once or again and again."""

    help = (
        "Remove versions and states that need not be kept, objects that no version points at, "
        "access tokens that ended long ago, old audit events (into archives) and expired sessions. "
        "The service may run meanwhile. A part that another process does is left to it; one that "
        "fails does not stop the others. See docs/how-to/retention.md."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--only", choices=PARTS, action="append", metavar="PART", help=", ".join(PARTS)
        )
        parser.add_argument("--watch", action="store_true", help="go on until SIGTERM")
        parser.add_argument(
            "--interval", type=int, default=24 * _HOUR, metavar="S",
            help="with --watch: seconds between two runs (a day)",
        )  # fmt: skip
        parser.add_argument(
            "--max-seconds", type=int, default=_HOUR, metavar="S",
            help="of each part; what is left is for the next run (an hour)",
        )  # fmt: skip
        parser.add_argument("--json", action="store_true", help="print the outcome as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run.

        Raises:
            CommandError: a part failed, of the last run when there were several.
        """
        if options["interval"] < 1 or options["max_seconds"] < 1:
            raise CommandError("--interval and --max-seconds are at least 1")
        stop = threading.Event()

        def end(*_: Any) -> None:
            stop.set()

        handlers = {
            number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            failed = self._run(options, stop)
            while options["watch"] and not stop.wait(options["interval"]):
                failed = self._run(options, stop)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        if failed:
            raise CommandError(f"failed: {', '.join(failed)}")

    def _run(self, options: dict[str, Any], stop: threading.Event) -> list[str]:
        """Do the parts once, and return those that failed."""
        outcomes = {
            name: run_part(name, most_seconds=options["max_seconds"], stop=stop)
            for name in PARTS
            if (not options["only"] or name in options["only"]) and not stop.is_set()
        }
        if options["watch"]:
            connection.close()  # it would be idle for hours
        if options["json"]:
            told = {
                name: {**outcome._asdict(), "seconds": round(outcome.seconds, 3)}
                for name, outcome in outcomes.items()
            }
            self.stdout.write(json.dumps(told))
        else:
            for name, outcome in outcomes.items():
                error = f": {outcome.error}" if outcome.error else ""
                self.stdout.write(f"{name}: {outcome.status}, {outcome.removed} removed{error}")
        self.stdout.flush()  # of a watch, somebody reads each outcome
        return [name for name, outcome in outcomes.items() if outcome.error]
