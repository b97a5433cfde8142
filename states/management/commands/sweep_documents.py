"""Delete stored objects that no version refers to."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError

from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.commandline.progress import counted
from states.errors import StorageUnavailable
from states.keeping import storage, sweeping
from states.keeping.attempts import IncompleteError

if TYPE_CHECKING:
    from argparse import ArgumentParser

#: The minimum age. Requests take less time, so an object is not deleted before its row is written.
_SAFE_HOURS: Final = 1
#: A hundred years. Dates cannot express much larger ages.
_MOST_HOURS: Final = 876_000


class Command(ServiceCommand):
    """Delete unreferenced objects in the object store of STATE_STORAGE_URL."""

    help = (
        "Delete objects in the object store that no version refers to. Writers that crash or "
        "lose a race leave such objects behind. The service can keep running."
    )
    examples = ("sweep_documents --dry-run", "sweep_documents --older-than-hours 48 --json")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--older-than-hours",
            type=float,
            default=24,
            help="the minimum age of objects to delete, at least 1 hour",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="only report the objects that would be deleted"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Delete the objects, and print a line for each.

        Raises:
            CommandError: no object store is configured, the object store does not respond, the age
                is too low, or some objects could not be deleted.
        """
        hours = options["older_than_hours"]
        if not storage.is_configured():
            raise CommandError("STATE_STORAGE_URL is not set")
        if not _SAFE_HOURS <= hours <= _MOST_HOURS:
            raise CommandError(
                f"--older-than-hours must be at least {_SAFE_HOURS}, and at most {_MOST_HOURS}"
            )
        swept, incomplete = 0, None
        try:
            with self.progress("states", lambda: len(sweeping.directories())) as bar:
                for name in sweeping.sweep(
                    older_than=dt.timedelta(hours=hours), dry_run=options["dry_run"]
                ):
                    if name is None:
                        bar.advance()
                    else:
                        swept += 1
                        self.note(name)
        except StorageUnavailable as error:
            done = counted(swept, "object")
            raise CommandError(f"stopped after {done}: {error.detail}") from error
        except IncompleteError as error:
            incomplete = error
        self.report(
            {"swept": swept, "dry_run": options["dry_run"]},
            f"{counted(swept, 'object')} {'would be deleted' if options['dry_run'] else 'deleted'}",
        )
        if incomplete is not None:
            raise CommandError(str(incomplete)) from incomplete
