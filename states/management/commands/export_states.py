"""Export all states as plain files."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from apikeys.actors import Actor
from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.commandline.progress import counted
from states.errors import StorageUnavailable
from states.moving import exporting
from states.moving.files import DirectoryTarget
from states.moving.sources import SourceError

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from states.moving.exporting import Target


class Command(ServiceCommand):
    """Export every state that is not deleted, and report locked and damaged states."""

    help = (
        "Export all states as plain .tfstate files, organized in folders by name, with a "
        "manifest.jsonl that import_states reads. The service can keep running. The files contain "
        "every secret of the states. If the target is a directory, only the user who runs the "
        "command can read the files."
    )
    examples = (
        "export_states --to exported",
        "export_states --to s3://bucket/exported --history --json",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--to",
            required=True,
            metavar="DIR|s3://BUCKET/PREFIX",
            help="a new directory, or a new folder in a bucket",
        )
        parser.add_argument(
            "--history", action="store_true", help="all versions, not only the newest"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Export the states, and print a line for each locked state and each unreadable document.

        Raises:
            CommandError: the destination is not writable, the object store does not respond, or
                some documents could not be read.
        """
        counts = {"states": 0, "versions": 0, "locked": 0, "unreadable": 0}
        try:
            with (
                closing(_target(options["to"])) as target,
                self.progress("states", exporting.exportable().count) as bar,
            ):
                actor = Actor.of_command("export_states")
                for state in exporting.export(target, history=options["history"], actor=actor):
                    counts["states"] += state.versions > 0
                    counts["versions"] += state.versions
                    counts["locked"] += state.is_locked
                    counts["unreadable"] += len(state.problems)
                    if state.is_locked:
                        self.note(f"{state.path}: the state is locked; the lock is not exported")
                    for problem in state.problems:
                        self.problem(f"{state.path}: {problem}")
                    bar.advance()
        except SourceError as error:
            raise CommandError(str(error)) from error
        except StorageUnavailable as error:
            raise CommandError(f"stopped: {error.detail}") from error
        self.report(
            counts,
            f"{counted(counts['states'], 'state')} exported, "
            f"{counted(counts['versions'], 'version')}",
        )
        if counts["unreadable"]:
            raise CommandError(f"{counted(counts['unreadable'], 'damaged document')} skipped")


def _target(text: str) -> Target:
    if not text.startswith("s3://"):
        scheme, separator, _ = text.partition("://")
        if separator:  # otherwise, the export would be in a folder of this name
            raise CommandError(f"{scheme}:// is not supported. Use a directory or s3://bucket.")
        return DirectoryTarget(Path(text).absolute())
    from states.moving.export_bucket import BucketTarget  # noqa: PLC0415 - it needs an extra

    return BucketTarget(text)
