"""Tell webhook endpoints what has happened."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError
from django.db import Error as DatabaseFailure
from django.db import connection

from infra_service.commandline.base import ServiceCommand
from infra_service.commandline.stopping import stop_at_eof, stopped_by_signals
from infra_service.webhooks.actions import reencrypt_secrets
from infra_service.webhooks.delivering import Deliverer

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from infra_service.webhooks.claiming import Attempt

#: Seconds to wait for a database that does not answer.
_PATIENCE: Final = 10


class Command(ServiceCommand):
    """Deliver the events of the trail to the webhook endpoints that are told of them."""

    help = (
        "Read the audit trail, and send its events to the webhook endpoints that are to be told of "
        "them; those that are not taken are sent again, for three days. Several of these may run "
        "at once, and each may be killed: what it was at is sent again by another."
    )
    examples = ("deliver_events", "deliver_events --watch", "deliver_events --json")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--watch", action="store_true", help="go on until SIGTERM")
        parser.add_argument(
            "--interval", type=float, default=1.0, metavar="S",
            help="with --watch: seconds between two looks for new events",
        )  # fmt: skip
        parser.add_argument(
            "--until-eof",
            action="store_true",
            help="with --watch: end also when standard input does, which is a pipe of the process "
            "that this is to end with",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Deliver.

        Raises:
            CommandError: the interval is none.
        """
        if options["interval"] <= 0:
            raise CommandError("--interval is more than 0 seconds")
        stop = threading.Event()
        with stopped_by_signals(stop.set), self.progress("messages") as bar:
            counts = {"delivered": 0, "failed": 0}

            def count(attempt: Attempt) -> None:
                counts["delivered" if attempt.answer.is_success else "failed"] += 1
                bar.advance()

            deliverer = Deliverer(stop, count)
            if options["watch"]:
                if options["until_eof"]:
                    stop_at_eof(stop)
                self._watch(deliverer, stop, options["interval"])
            else:
                reencrypt_secrets()
                deliverer.run(None)
        self.report(
            counts, f"{counts['delivered']} messages delivered; {counts['failed']} attempts failed"
        )

    def _watch(self, deliverer: Deliverer, stop: threading.Event, interval: float) -> None:
        while not stop.is_set():
            try:
                reencrypt_secrets()
                deliverer.run(interval)
            except DatabaseFailure as error:
                self.problem(f"waiting: {error}")
                connection.close()  # a broken one is not mended
                stop.wait(_PATIENCE)
