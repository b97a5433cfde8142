"""Index the resources of states."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.core.management.base import CommandError
from django.db import Error as DatabaseFailure
from django.db import connection
from rest_framework.exceptions import APIException

from infra_service.lib import encryption
from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.commandline.progress import counted
from infra_service.lib.commandline.stopping import stopped_by_signals
from infra_service.lib.commandline.watching import add_watch_options, stop_of
from states.errors import StorageUnavailable
from states.keeping.attempts import IncompleteError
from states.models import State
from states.resources import indexing

if TYPE_CHECKING:
    import threading
    from argparse import ArgumentParser
    from collections.abc import Iterator

    from infra_service.lib.commandline.progress import Progress
    from states.resources.indexing import Indexed

#: Errors that are temporary, or already logged.
_PASSING: Final = (StorageUnavailable, DatabaseFailure, IncompleteError)
#: Seconds to wait for a database or an object store that does not respond.
_RETRY_SECONDS: Final = 10

log = structlog.get_logger("states.resources")


class Command(ServiceCommand):
    """Update the resource index to the current versions of all states."""

    help = (
        "Index the resources of each state whose current version is not in the resource "
        "index. GET /api/v1/resources and POST /api/v1/resources:find read the index. The "
        "service can keep running, several of these commands can run at the same time, and "
        "the next run continues an interrupted run. The audit log records keys and tokens "
        "of this service that the command finds in a document. The command reports an "
        "unreadable document. It retries a document that cannot be loaded or decrypted whenever "
        "it starts, and other documents when the state changes."
    )
    examples = ("index_states", "index_states --watch", "index_states --all --json")

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_watch_options(parser, "changed states")
        parser.add_argument(
            "--all",
            action="store_true",
            help="index all states again; existing entries stay available in the meantime",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Index the states once, or repeatedly with ``--watch``.

        Raises:
            CommandError: the object store does not respond, some states could not be indexed, or
                the encryption keys do not include the key of the database.
        """
        stop = stop_of(options)
        try:
            encryption.guard()  # with other keys, the command would empty the index
        except APIException as error:
            raise CommandError(str(error)) from error
        with stopped_by_signals(stop.set):
            indexing.mark_for_indexing(everything=options["all"])
            if options["watch"]:
                self._watch(stop, options["interval"])
            else:
                self._once(stop)

    def _once(self, stop: threading.Event) -> None:
        indexed, resources = 0, 0
        problems: list[dict[str, Any]] = []
        try:
            with self.progress("states", State.objects.due().count) as bar:
                for done in self._pass(bar, stop):
                    indexed += 1
                    resources += done.resources
                    problems += [_described(done)] if done.problem else []
        except StorageUnavailable as error:
            number = counted(indexed, "state")
            raise CommandError(f"stopped after {number}: {error.detail}") from error
        except IncompleteError as error:
            raise CommandError(f"{counted(indexed, 'state')} indexed; {error}") from error
        self.report(
            {"indexed": indexed, "resources": resources, "problems": problems},
            f"{counted(indexed, 'state')} indexed, with {counted(resources, 'resource')}; "
            f"{len(problems)} cannot be read",
        )

    def _watch(self, stop: threading.Event, interval: float) -> None:
        with self.progress("states") as bar:
            while not stop.is_set():
                pause = interval
                try:
                    deque(self._pass(bar, stop), maxlen=0)
                except Exception as error:
                    if not isinstance(error, _PASSING):
                        log.exception("index_pass_failed")
                    self.problem(f"waiting: {error}")
                    connection.close()  # Django does not repair a broken connection
                    pause = max(interval, _RETRY_SECONDS)
                stop.wait(pause)

    def _pass(self, bar: Progress, stop: threading.Event) -> Iterator[Indexed]:
        """Index the due states, and print a line for each unreadable document."""
        for done in indexing.index_due():
            if done.problem:
                self.problem(" ".join(map(str, _described(done).values())))
            bar.advance()
            yield done
            if stop.is_set():
                return


def _described(done: Indexed) -> dict[str, Any]:
    return {
        "state": str(done.state_id),
        "version": done.version_number,
        "problem": done.problem,
    }
