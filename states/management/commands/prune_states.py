"""Remove history beyond its retention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from apikeys.actors import Actor
from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.commandline.progress import counted
from states.keeping import pruning
from states.keeping.attempts import IncompleteError

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ServiceCommand):
    """Remove versions and deleted states beyond their retention."""

    help = (
        "Delete versions beyond the newest STATE_VERSIONS_KEPT that are older than "
        "STATE_VERSIONS_DAYS, and states deleted more than STATE_RETENTION_DAYS ago. The "
        "service can keep running. The next run continues an interrupted run."
    )
    examples = ("prune_states --dry-run", "prune_states --json")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="only count the versions and states that would be deleted",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Delete the versions and states beyond their retention.

        Raises:
            CommandError: some states could not be pruned.
        """
        total = {"versions": 0, "states": 0, "size_bytes": 0}
        actor, dry_run = Actor.of_command("prune_states"), options["dry_run"]

        def removable() -> int | None:
            found = pruning.prune(actor=actor, dry_run=True)
            return None if dry_run else sum(batch.versions for batch in found)

        incomplete = None
        try:
            with self.progress("versions", removable) as bar:
                for batch in pruning.prune(actor=actor, dry_run=dry_run):
                    total["versions"] += batch.versions
                    total["states"] += batch.states
                    total["size_bytes"] += batch.size_bytes
                    bar.advance(batch.versions)
        except IncompleteError as error:
            incomplete = error
        self.report(
            {**total, "dry_run": dry_run},
            f"{'would be removed' if dry_run else 'removed'}: "
            f"{counted(total['versions'], 'version')} and "
            f"{counted(total['states'], 'deleted state')}, "
            f"{counted(total['size_bytes'], 'byte')} of documents",
        )
        if incomplete is not None:
            raise CommandError(str(incomplete)) from incomplete
