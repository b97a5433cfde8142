"""Let old events leave the audit trail, into files whose order and contents can be proved."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from apikeys.archiving import ArchiveError, archive_next, check_archives
from apikeys.audit import Actor
from apikeys.management.base import ServiceCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ServiceCommand):
    """Archive the events of before a date, or check the archives."""

    help = (
        "Write the audit events of before a date (UTC) to files in a directory, read them again, "
        "and only then remove them from the database. A run that was stopped is continued by the "
        "next. With --check: read all archives and say which are not what left the trail."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--before", type=dt.date.fromisoformat, help="YYYY-MM-DD, UTC")
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument("--to", type=Path, metavar="DIR", help="where the archives go")
        where.add_argument("--check", type=Path, metavar="DIR", help="where the archives are")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Archive, or check."""
        if options["check"] is not None:
            self._check(options["check"], as_json=options["json"])
            return
        if options["before"] is None:
            raise CommandError("--to needs --before")
        before = dt.datetime.combine(options["before"], dt.time(), dt.UTC)
        actor = Actor.of_command("archive_audit_events")
        archives = events = 0
        try:
            while archive := archive_next(before=before, directory=options["to"], actor=actor):
                archives, events = archives + 1, events + archive.events
                self.stderr.write(f"{archive}: {archive.events} events")
        except ArchiveError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps({"archives": archives, "events": events}))
        else:
            self.stdout.write(f"{events} events left in {archives} archives")

    def _check(self, directory: Path, *, as_json: bool) -> None:
        if not directory.is_dir():
            raise CommandError(f"{directory} is no directory")
        checked, problems = 0, []
        for name, problem in check_archives(directory):
            checked += 1
            if problem is not None:
                problems.append({"archive": name, "problem": problem})
        if as_json:
            self.stdout.write(json.dumps({"checked": checked, "problems": problems}))
        else:
            for found in problems:
                self.stdout.write(f"{found['archive']}: {found['problem']}")
            self.stdout.write(f"{checked} archives checked, {len(problems)} problems")
        if problems:
            raise CommandError("the archives are not what left the trail")
