"""Deliver events to webhook endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog
from django.core.management.base import CommandError
from django.db import Error as DatabaseFailure
from django.db import connection

from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.commandline.isolation import recording_failures
from infra_service.lib.commandline.progress import counted
from infra_service.lib.commandline.stopping import stopped_by_signals
from infra_service.lib.commandline.watching import add_watch_options, stop_of
from infra_service.webhooks.delivering import Deliverer

if TYPE_CHECKING:
    import threading
    from argparse import ArgumentParser

    from infra_service.webhooks.queue import Attempt

log = structlog.get_logger("infra_service.webhooks")

#: Seconds before the next attempt after a database failure or an unexpected error.
_PAUSE: Final = 10


class Command(ServiceCommand):
    """Deliver audit events to the subscribed webhook endpoints."""

    help = (
        "Read the audit log and deliver its events to the subscribed webhook endpoints. "
        "The command retries failed deliveries for three days. Several instances can run at "
        "the same time. If an instance is killed, another continues its work."
    )
    examples = ("deliver_events", "deliver_events --watch", "deliver_events --json")

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_watch_options(parser, "new events")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Deliver the events.

        Raises:
            CommandError: the interval is not positive; or, without ``--watch``, an item failed with
                an unexpected error.
        """
        stop = stop_of(options)
        with stopped_by_signals(stop.set), self.progress("messages") as bar:
            counts = {"delivered": 0, "failed": 0}

            def count(attempt: Attempt) -> None:
                counts["delivered" if attempt.outcome.is_success else "failed"] += 1
                bar.advance()

            deliverer = Deliverer(stop, count)
            failures: list[str] = []
            if options["watch"]:
                self._watch(deliverer, stop, options["interval"])
            else:
                with recording_failures() as failures:
                    deliverer.run(None)
        self.report(
            counts,
            f"{counted(counts['delivered'], 'message')} delivered; "
            f"{counted(counts['failed'], 'attempt')} failed",
        )
        if failures:
            works = ", ".join(sorted(set(failures)))
            raise CommandError(
                f"{len(failures)} items failed, and the others succeeded ({works}). The log "
                "contains the tracebacks."
            )

    def _watch(self, deliverer: Deliverer, stop: threading.Event, interval: float) -> None:
        while not stop.is_set():
            try:
                deliverer.run(interval)
            except DatabaseFailure as error:
                self.problem(f"waiting: {error}")
            except Exception:
                log.exception("item_failed", work="deliver events")
            else:
                continue
            connection.close()  # a broken connection does not recover
            stop.wait(_PAUSE)
