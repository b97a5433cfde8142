"""Re-encrypt the stored documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from infra_service.commandline.base import ServiceCommand
from states.errors import StorageUnavailable
from states.keeping import reencryption

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ServiceCommand):
    """Re-encrypt every document that the first of STATE_ENCRYPTION_KEYS does not encrypt."""

    help = (
        "Re-encrypt every stored document with the first of STATE_ENCRYPTION_KEYS. The service may "
        "run meanwhile; a run that was stopped is continued by the next."
    )
    examples = ("rotate_state_keys", "rotate_state_keys --all --json")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--all",
            action="store_true",
            help="re-encrypt also what the first key encrypts, so that documents which were stored "
            "before numbers of versions were a part of the encryption are bound to theirs",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Re-encrypt, with a line for each document that fails.

        Raises:
            CommandError: a document was not re-encrypted, for example because it is damaged; or
                the object store does not answer.
        """
        counts = {"reencrypted": 0, "failed": 0}
        try:
            with self.progress(
                "documents", reencryption.due(everything=options["all"]).count
            ) as bar:
                for version, problem in reencryption.rotate_keys(everything=options["all"]):
                    counts["failed" if problem else "reencrypted"] += 1
                    if problem:
                        self.problem(
                            f"failed: state {version.state_id} version {version.number}: {problem}"
                        )
                    bar.advance()
        except StorageUnavailable as error:
            raise CommandError(
                f"stopped after {counts['reencrypted']} documents: {error.detail}"
            ) from error
        self.report(counts, f"{counts['reencrypted']} documents re-encrypted")
        if counts["failed"]:
            raise CommandError(
                f"{counts['failed']} documents are not re-encrypted: their old key stays needed "
                "unless they are lost anyway"
            )
