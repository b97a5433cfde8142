"""Re-encrypt the stored documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError

from apikeys.management.base import ServiceCommand
from states import rewriting
from states.errors import DocumentUnreadable, StorageUnavailable

if TYPE_CHECKING:
    from argparse import ArgumentParser

_REPORT_EVERY: Final = 1000


class Command(ServiceCommand):
    """Re-encrypt every document that the first of STATE_ENCRYPTION_KEYS does not encrypt."""

    help = (
        "Re-encrypt every stored document with the first of STATE_ENCRYPTION_KEYS. The service may "
        "run meanwhile; a run that was stopped is continued by the next."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--all",
            action="store_true",
            help="re-encrypt also what the first key encrypts, so that documents which were stored "
            "before numbers of versions were a part of the encryption are bound to theirs",
        )
        parser.add_argument("--json", action="store_true", help="print the count as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Re-encrypt, with a line of progress now and then.

        Raises:
            CommandError: a document does not decrypt, so its old key must stay configured; or the
                object store does not answer.
        """
        done = 0
        try:
            for done, _version in enumerate(
                rewriting.rotate_keys(everything=options["all"]), start=1
            ):
                if done % _REPORT_EVERY == 0:
                    self.stderr.write(f"{done} documents")
        except (DocumentUnreadable, StorageUnavailable) as error:
            raise CommandError(f"stopped after {done} documents: {error.detail}") from error
        if options["json"]:
            self.stdout.write(json.dumps({"reencrypted": done}))
        else:
            self.stdout.write(f"{done} documents re-encrypted")
