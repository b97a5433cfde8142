"""Check every stored document against its digest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError

from apikeys.management.base import ServiceCommand
from states import verification
from states.errors import StorageUnavailable

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from states.verification import Checked

_REPORT_EVERY: Final = 1000


class Command(ServiceCommand):
    """Read every document, in both stores, and report those that are missing or damaged."""

    help = "Check every stored document against the digest and size that were recorded."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="print the outcome as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Check, with a line for each problem.

        Raises:
            CommandError: a document is missing or damaged, or the object store does not answer.
        """
        checked, unnumbered, problems = 0, 0, []
        try:
            for checked, found in enumerate(verification.verify(), start=1):
                unnumbered += not found.is_numbered
                if found.problem is not None:
                    problems.append(_described(found))
                    self.stderr.write(" ".join(map(str, problems[-1].values())))
                if checked % _REPORT_EVERY == 0:
                    self.stderr.write(f"{checked} documents")
        except StorageUnavailable as error:
            raise CommandError(f"stopped after {checked} documents: {error.detail}") from error
        if options["json"]:
            outcome = {"checked": checked, "problems": problems, "unnumbered": unnumbered}
            self.stdout.write(json.dumps(outcome))
        else:
            self.stdout.write(f"{checked} documents checked, {len(problems)} problems")
            if unnumbered:
                self.stdout.write(
                    f"{unnumbered} are not bound to their numbers; "
                    "rotate_state_keys --all binds them"
                )
        if problems:
            raise CommandError(f"{len(problems)} of {checked} documents are missing or damaged")


def _described(found: Checked) -> dict[str, Any]:
    version = found.version
    return {
        "state": str(version.state_id),
        "version": version.number,
        "stored_in": version.object_name or "database",
        "problem": found.problem,
    }
