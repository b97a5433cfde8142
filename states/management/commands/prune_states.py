"""Remove history that need not be kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from apikeys.audit import Actor
from apikeys.management.base import ServiceCommand
from states import pruning

if TYPE_CHECKING:
    from argparse import ArgumentParser

_REPORT_EVERY: Final = 1000


class Command(ServiceCommand):
    """Remove the versions that retention does not keep, and states deleted long ago."""

    help = (
        "Remove versions beyond the newest STATE_VERSIONS_KEPT that are older than "
        "STATE_VERSIONS_DAYS, and states that were deleted STATE_RETENTION_DAYS ago. The service "
        "may run meanwhile; a run that was stopped is continued by the next."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--dry-run", action="store_true", help="only say what would go")
        parser.add_argument("--json", action="store_true", help="print the counts as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Prune, with a line of progress now and then."""
        total = {"versions": 0, "states": 0, "size_bytes": 0}
        reported = 0
        actor = Actor.of_command("prune_states")
        for batch in pruning.prune(actor=actor, dry_run=options["dry_run"]):
            total["versions"] += batch.versions
            total["states"] += batch.states
            total["size_bytes"] += batch.size_bytes
            if total["versions"] - reported >= _REPORT_EVERY:
                reported = total["versions"]
                self.stderr.write(f"{reported} versions")
        if options["json"]:
            self.stdout.write(json.dumps({**total, "dry_run": options["dry_run"]}))
        else:
            verb = "would go" if options["dry_run"] else "removed"
            self.stdout.write(
                f"{verb}: {total['versions']} versions and {total['states']} deleted states, "
                f"{total['size_bytes']} bytes of documents"
            )
