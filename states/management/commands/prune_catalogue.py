"""Remove unused catalogue entries."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from apikeys.actors import Actor
from infra_service.lib.commandline.base import ServiceCommand
from states.actions import removal

if TYPE_CHECKING:
    from argparse import ArgumentParser

#: The maximum of all settings in days.
_MOST_DAYS = 700_000


class Command(ServiceCommand):
    """Remove components, applications and environments that no state uses."""

    help = (
        "Delete unused components, applications and environments: entries that have no states, "
        "deleted states or components, and were created and last changed at least --days ago. The "
        "command keeps entries in the binding of a key, token, trust policy or webhook. The "
        "service can keep running. The housekeeping command also deletes unused entries if "
        "CATALOGUE_UNUSED_DAYS is set."
    )
    examples = ("prune_catalogue --days 180 --dry-run", "prune_catalogue --days 180 --json")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days", type=int, metavar="N",
            help="the minimum age in days; the default is CATALOGUE_UNUSED_DAYS",
        )  # fmt: skip
        parser.add_argument(
            "--dry-run", action="store_true", help="only list the entries that would be deleted"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Remove the entries.

        Raises:
            CommandError: the age is missing or invalid.
        """
        given, dry_run = options["days"], options["dry_run"]
        days = settings.CATALOGUE_UNUSED_DAYS if given is None else given
        if not 1 <= days <= _MOST_DAYS:
            raise CommandError("Specify --days N of at least 1, or set CATALOGUE_UNUSED_DAYS.")
        before = timezone.now() - dt.timedelta(days=days)
        actor = Actor.of_command("prune_catalogue")
        with self.progress("entries") as bar:
            removed = []
            for batch in removal.remove_unused(before=before, actor=actor, dry_run=dry_run):
                removed += batch
                bar.advance(len(batch))
        entries = [
            {"kind": entry._meta.model_name, "id": str(entry.pk), "name": entry.name}
            for entry in removed
        ]
        self.report(
            {"entries": entries, "dry_run": dry_run},
            *(f"{entry['kind']} {entry['name'] or '-'} ({entry['id']})" for entry in entries),
            f"{'would be removed' if dry_run else 'removed'}: {len(entries)} unused entries",
        )
