"""Check every stored document against its digest, and the keys that stored values need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from infra_service import key_rotation
from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.commandline.progress import counted
from states.errors import StorageUnavailable
from states.keeping import verification
from states.models import StateVersion

if TYPE_CHECKING:
    from states.keeping.verification import Checked


class Command(ServiceCommand):
    """Read every document in both stores, and report damage, missing keys and older keys."""

    help = (
        "Check every stored document against the recorded digest and size, and count the values "
        "that require a key other than the first of STATE_ENCRYPTION_KEYS."
    )
    examples = ("verify_states", "verify_states --json")

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Check the documents and keys, and print a line for each problem.

        Raises:
            CommandError: a document is missing or damaged, the key of a value is not configured,
                or the object store does not respond.
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
            done = counted(checked, "document")
            raise CommandError(f"stopped after {done}: {error.detail}") from error
        damaged, older = len(problems), self._older_values(problems)
        lines = [f"{counted(checked, 'document')} checked, {counted(len(problems), 'problem')}"]
        needing = ", ".join(f"{count} {name}" for name, count in older.items() if count)
        lines.append(f"older keys are needed by: {needing or 'nothing'}")
        if unnumbered:
            lines.append(
                f"{unnumbered} documents are not bound to their version numbers; "
                f"rotate_state_keys --all binds them"
            )
        self.report(
            {
                "checked": checked,
                "problems": problems,
                "unnumbered": unnumbered,
                "need_older_keys": older,
            },
            *lines,
        )
        if damaged:
            raise CommandError(f"{damaged} of {checked} documents cannot be read")
        if problems:
            raise CommandError(f"{len(problems)} values need a key that is not configured")

    def _older_values(self, problems: list[dict[str, Any]]) -> dict[str, int]:
        """Count by kind the values that need an older key, and report values with a missing key.

        Values with a missing key are added to ``problems``, which already contains the problems of
        documents.
        """
        counts = {"documents": sum(1 for _ in key_rotation.older_documents())}
        for kind in key_rotation.KINDS:
            counts[kind.name] = 0
            for value in kind.older():
                counts[kind.name] += 1
                if value.is_key_missing:
                    problems.append({"item": value.item, "problem": key_rotation.KEY_MISSING})
                    self.problem(f"{value.item}: {key_rotation.KEY_MISSING}")
        return counts


def _described(found: Checked) -> dict[str, Any]:
    version = found.version
    return {
        "state": str(version.state_id),
        "version": version.number,
        "stored_in": version.object_name or "database",
        "problem": found.problem,
    }
