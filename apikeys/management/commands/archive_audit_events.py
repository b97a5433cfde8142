"""Archive old audit events into files with verifiable order and contents."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from apikeys.actors import Actor
from apikeys.archiving import ArchiveError, archive_next, check_archives
from apikeys.models import AuditArchive, AuditEvent
from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.commandline.progress import counted

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ServiceCommand):
    """Archive the events before a date, or verify the archives."""

    help = (
        "Write the audit events before a date (UTC) to files in a directory, verify the "
        "files, and then delete the events from the database. The next run continues an "
        "interrupted run. With --check, verify all archives and list their differences from "
        "the archived events."
    )
    examples = (
        "archive_audit_events --before 2026-01-01 --to audit-archives",
        "archive_audit_events --check audit-archives --json",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--before",
            type=dt.date.fromisoformat,
            help="YYYY-MM-DD, UTC; on PostgreSQL, only months that end before the date",
        )
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument(
            "--to", type=Path, metavar="DIR", help="existing directory for the archives"
        )
        where.add_argument("--check", type=Path, metavar="DIR", help="directory of the archives")

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["check"] is not None:
            self._check(options["check"])
            return
        if options["before"] is None:
            raise CommandError("--to needs --before")
        before = dt.datetime.combine(options["before"], dt.time(), dt.UTC)
        actor = Actor.of_command("archive_audit_events")
        archives = events = 0
        old = AuditEvent.objects.filter(occurred_at__lt=before)
        try:
            with self.progress("events", old.count) as bar:
                while archive := archive_next(before=before, directory=options["to"], actor=actor):
                    archives, events = archives + 1, events + archive.events
                    self.note(f"{archive}: {counted(archive.events, 'event')}")
                    bar.advance(archive.events)
        except ArchiveError as error:
            raise CommandError(str(error)) from error
        self.report(
            {"archives": archives, "events": events},
            f"{counted(events, 'event')} moved to {counted(archives, 'archive')}",
        )

    def _check(self, directory: Path) -> None:
        if not directory.is_dir():
            raise CommandError(f"{directory} is not a directory")
        checked, problems = 0, []
        with self.progress("archives", AuditArchive.objects.count) as bar:
            for name, problem in check_archives(directory):
                checked += 1
                if problem is not None:
                    problems.append({"archive": name, "problem": problem})
                bar.advance()
        self.report(
            {"checked": checked, "problems": problems},
            *(f"{found['archive']}: {found['problem']}" for found in problems),
            f"{counted(checked, 'archive')} checked, {counted(len(problems), 'problem')}",
        )
        if problems:
            raise CommandError("the archives differ from the archived events")
