"""Check every stored document against its digest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from infra_service.commandline.base import ServiceCommand
from states.errors import StorageUnavailable
from states.keeping import verification
from states.models import StateVersion

if TYPE_CHECKING:
    from states.keeping.verification import Checked


class Command(ServiceCommand):
    """Read every document, in both stores, and report those that are missing or damaged."""

    help = "Check every stored document against the digest and size that were recorded."
    examples = ("verify_states", "verify_states --json")

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Check, with a line for each problem.

        Raises:
            CommandError: a document is missing or damaged, or the object store does not answer.
        """
        checked, unnumbered, problems = 0, 0, []
        try:
            with self.progress("documents", StateVersion.objects.count) as bar:
                for found in verification.verify():
                    checked += 1
                    unnumbered += not found.is_numbered
                    if found.problem is not None:
                        problems.append(_described(found))
                        self.problem(" ".join(map(str, problems[-1].values())))
                    bar.advance()
        except StorageUnavailable as error:
            raise CommandError(f"stopped after {checked} documents: {error.detail}") from error
        lines = [f"{checked} documents checked, {len(problems)} problems"]
        if unnumbered:
            lines.append(
                f"{unnumbered} are not bound to their numbers; rotate_state_keys --all binds them"
            )
        self.report({"checked": checked, "problems": problems, "unnumbered": unnumbered}, *lines)
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
