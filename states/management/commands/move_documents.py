"""Move the stored documents between the database and the object store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError

from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.commandline.progress import counted
from states.errors import StorageUnavailable
from states.keeping import reencryption, storage

if TYPE_CHECKING:
    from argparse import ArgumentParser

_STORE: Final = "storage"


class Command(ServiceCommand):
    """Move every document to its configured location."""

    help = (
        "Move every document to the object store of STATE_STORAGE_URL, or to the "
        "database. The service can keep running. The next run continues an interrupted "
        "run."
    )
    examples = ("move_documents --to storage", "move_documents --to database --json")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--to", choices=["database", _STORE], required=True, help="the destination"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Move the documents, and print a line for each document that cannot be moved.

        Raises:
            CommandError: the settings store new documents elsewhere, the object store does not
                respond, or damaged documents were not moved.
        """
        to_store = options["to"] == _STORE
        _check_settings(to_store=to_store)
        counts = {"moved": 0, "damaged": 0}
        try:
            with self.progress(
                "documents", reencryption.elsewhere(than_store=to_store).count
            ) as bar:
                for version, problem in reencryption.move(to_store=to_store):
                    counts["damaged" if problem else "moved"] += 1
                    if problem:
                        self.problem(f"damaged: state {version.state_id} version {version.number}")
                    bar.advance()
        except StorageUnavailable as error:
            raise CommandError(
                f"stopped after {counted(counts['moved'], 'document')}: {error.detail}"
            ) from error
        self.report(counts, f"{counted(counts['moved'], 'document')} moved")
        if counts["damaged"]:
            raise CommandError(f"{counts['damaged']} damaged documents were not moved")


def _check_settings(*, to_store: bool) -> None:
    if not storage.is_configured():
        raise CommandError("STATE_STORAGE_URL is not set")
    if to_store and not storage.receives_new_documents():
        raise CommandError(
            "STATE_STORAGE_WRITES is false: new documents are stored in the database"
        )
    if not to_store and storage.receives_new_documents():
        raise CommandError(
            "new documents are still stored in the object store: first set "
            "STATE_STORAGE_WRITES=false for the service and this command"
        )
