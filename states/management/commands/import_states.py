"""Import states from another backend."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError

from apikeys.actors import Actor
from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.commandline.tables import printable
from states.errors import StorageUnavailable
from states.moving.files import write_backend
from states.moving.importing import Import, read_back
from states.moving.mapping import Map, MapError
from states.moving.own_export import OwnExport
from states.moving.plan import EMPTY, FAILED, IMPORT, IMPORTED, REFUSED, UNCHANGED, Plan, Row
from states.moving.sources import SourceError, open_source

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from states.moving.sources import Source

_ALL: Final = "all"
_HEADINGS: Final = ("KEY", "ADDRESS", "VERSIONS", "BYTES", "ACTION")


class Command(ServiceCommand):
    """Plan an import, run it, and verify it."""

    help = (
        "Import states from another backend, byte for byte. The command first prints a "
        "table of the states. It skips states without an address, and states that share "
        "an address. The next run continues an interrupted run. The service can keep "
        "running."
    )
    examples = (
        "import_states --from terraform-states --dry-run",
        "import_states --from terraform-states --map map.toml",
        "import_states --from network --component network",
        "import_states --from s3://terraform-states/live --history all",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--from",
            dest="source",
            required=True,
            metavar="SOURCE",
            help="a directory, s3://bucket/prefix, pg://user@host/database, gitlab:group/project "
            "or tfe:organization",
        )
        mapping = parser.add_mutually_exclusive_group()
        mapping.add_argument(
            "--map", type=Path, metavar="FILE", help="a TOML file that maps keys to states"
        )
        mapping.add_argument(
            "--component",
            metavar="NAME",
            help="the component of a configuration with workspaces: each workspace becomes the "
            "environment with the same name",
        )
        parser.add_argument(
            "--history",
            default="1",
            metavar="N|all",
            help="the number of versions to import for each state, newest first, or all",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="check every document and print the table, but write nothing",
        )
        parser.add_argument(
            "--write-backends",
            type=Path,
            metavar="DIR",
            help="write the backend block of each imported state; needs --url",
        )
        parser.add_argument("--url", help="the address of the service in the backend blocks")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print the plan, import the states, and print a line for each failed state.

        Raises:
            CommandError: the source or the map is unusable, or some states could not be imported.
        """
        most = _most(options["history"])
        blocks, url = options["write_backends"], options["url"]
        if blocks is not None and url is None:
            raise CommandError("--write-backends needs --url, such as https://infra.example")
        try:
            source = open_source(options["source"])
            chosen = _map(options, source)
            actor = Actor.of_command("import_states")
            plan, work = Plan(), Import(source, chosen, most, actor)
            self._list(work, plan, dry_run=options["dry_run"])
            if not options["dry_run"]:
                self._import(work, plan)
                for row in plan.rows(IMPORTED, UNCHANGED) if blocks else ():
                    write_backend(blocks, url, row)
            self._print_result(work, plan, dry_run=options["dry_run"])
        except (SourceError, MapError) as error:
            raise CommandError(str(error)) from error
        except StorageUnavailable as error:
            raise CommandError(f"stopped: {error.detail}") from error

    def _list(self, work: Import, plan: Plan, *, dry_run: bool) -> None:
        """Add the states to the plan and print it. In a dry run, also check each document."""
        with self.progress("states found") as bar:
            for _ in work.list_states(plan):
                bar.advance()
        if dry_run:
            with self.progress("states checked", lambda: plan.count(IMPORT)) as bar:
                for _ in work.rehearse(plan):
                    bar.advance()
        if not self._as_json:
            self._show_table(plan)

    def _import(self, work: Import, plan: Plan) -> None:
        wanted = (IMPORT, UNCHANGED)
        with self.progress("states", lambda: plan.count(*wanted)) as bar:
            for row in work.execute_plan(plan):
                if row.result == FAILED:
                    self.problem(printable(f"{row.key}: {row.reason}"))
                bar.advance()
        with self.progress("states read back", lambda: plan.count(IMPORTED, UNCHANGED)) as bar:
            for row in read_back(plan):
                if row.result == FAILED:
                    plan.change(row)
                    self.problem(printable(f"{row.key}: {row.reason}"))
                bar.advance()

    def _show_table(self, plan: Plan) -> None:
        key, address = (max(plan.width(name), len(name)) for name in ("key", "address"))
        form = f"{{:{key}}}  {{:{address}}}  {{:>8}}  {{:>10}}  {{}}"
        self.stdout.write(form.format(*_HEADINGS))
        for row in plan.rows():
            size = "" if row.size_bytes is None else row.size_bytes
            self.stdout.write(
                form.format(printable(row.key), row.address, row.versions, size, _step_text(row))
            )

    def _print_result(self, work: Import, plan: Plan, *, dry_run: bool) -> None:
        """Print the number of states with each result.

        Raises:
            CommandError: some states were not, or would not be, imported.
        """
        results = (IMPORT, IMPORTED, UNCHANGED, EMPTY, FAILED, REFUSED)
        counts = {result: plan.count(result) for result in results}
        rows = [asdict(row) for row in plan.rows()]
        summary = ", ".join(f"{count} {result}" for result, count in counts.items() if count)
        self.report(
            {"source": work.source.name, "dry_run": dry_run, **counts, "states": rows},
            f"{summary or 'no states found'}{' (dry run)' if dry_run else ''}",
        )
        if missing := counts[FAILED] + counts[REFUSED]:
            when = "would not be" if dry_run else "not"
            summary = f"{when} imported: {missing} of {sum(counts.values())} states"
            advice = "; a map can assign addresses to the refused states" if counts[REFUSED] else ""
            raise CommandError(summary + advice)


def _map(options: dict[str, Any], source: Source) -> Map:
    is_export = isinstance(source, OwnExport)
    if options["component"] is not None:
        if is_export:
            raise CommandError(
                "--component is for workspaces of another backend. The source is an export of "
                "this service, which contains the addresses. --map can assign other addresses."
            )
        return Map.of_workspaces(options["component"])
    if options["map"] is not None:
        return Map.read(options["map"])
    if is_export:
        return Map([], [])
    return Map.of_remote() if options["source"].startswith("tfe:") else Map.default()


def _most(text: str) -> int | None:
    if text == _ALL:
        return None
    if not text.isdecimal() or not int(text):
        raise CommandError("--history must be a number of versions, or all")
    return int(text)


def _step_text(row: Row) -> str:
    """Return the action for a state as text."""
    if row.reason:
        return f"{row.result}: {row.reason}"
    if row.result == UNCHANGED:
        return "nothing: already imported"
    if row.result == EMPTY:
        return "nothing: empty in the source"
    if row.outstanding < row.versions:
        return f"import: {row.outstanding} of {row.versions} versions are missing"
    return row.result
