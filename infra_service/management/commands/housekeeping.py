"""Delete data after its retention period."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError
from django.db import connection

from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.commandline.heartbeat import BeatingEvent, Heartbeat, add_heartbeat_option
from infra_service.lib.commandline.stopping import stopped_by_signals
from infra_service.operations.housekeeping import PARTS, run_part

if TYPE_CHECKING:
    import threading
    from argparse import ArgumentParser

_HOUR: Final = 60 * 60


class Command(ServiceCommand):
    """Run all or selected parts of housekeeping, once or repeatedly."""

    help = (
        "Delete versions and states beyond their retention, unused catalogue entries, "
        "unreferenced objects, access tokens that expired long ago, expired sessions, old history "
        "and old webhook deliveries. Also archive old audit events. The service can keep running. "
        "The command skips a part that another process is running, and continues after a failed "
        "part. See docs/how-to/retention.md."
    )
    examples = (
        "housekeeping",
        "housekeeping --only tokens --only sessions --json",
        "housekeeping --watch --interval 3600",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--only",
            choices=PARTS,
            action="append",
            metavar="PART",
            help=f"{', '.join(PARTS)}; may be repeated; the default is all parts",
        )
        parser.add_argument("--watch", action="store_true", help="run until SIGTERM or SIGINT")
        parser.add_argument(
            "--interval", type=int, default=24 * _HOUR, metavar="S",
            help="with --watch: seconds between two runs",
        )  # fmt: skip
        parser.add_argument(
            "--max-seconds", type=int, default=_HOUR, metavar="S",
            help="time limit of each part; the next run continues",
        )  # fmt: skip
        add_heartbeat_option(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the parts once, or repeatedly with ``--watch``.

        Raises:
            CommandError: a part failed in the last run.
        """
        if options["interval"] < 1 or options["max_seconds"] < 1:
            raise CommandError("--interval and --max-seconds must be at least 1")
        stop = BeatingEvent(Heartbeat(options["heartbeat_file"]))

        with stopped_by_signals(stop.set):
            failed = self._run(options, stop)
            while options["watch"] and not stop.wait(options["interval"]):
                failed = self._run(options, stop)
        if failed:
            raise CommandError(f"failed: {', '.join(failed)}")

    def _run(self, options: dict[str, Any], stop: threading.Event) -> list[str]:
        """Run the parts once, and return the names of the failed parts."""
        outcomes = {
            name: run_part(name, most_seconds=options["max_seconds"], stop=stop)
            for name in PARTS
            if (not options["only"] or name in options["only"]) and not stop.is_set()
        }
        if options["watch"]:
            connection.close()  # the connection would be idle for hours
        self.report(
            {
                name: {**outcome._asdict(), "seconds": round(outcome.seconds, 3)}
                for name, outcome in outcomes.items()
            },
            *(
                f"{name}: {outcome.status}, {outcome.removed} removed"
                + (f": {outcome.error}" if outcome.error else "")
                for name, outcome in outcomes.items()
            ),
        )
        return [name for name, outcome in outcomes.items() if outcome.error]
