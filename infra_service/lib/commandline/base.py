"""The base class of commands: help, ``--json`` and terminal output."""

from __future__ import annotations

import json
from argparse import ArgumentDefaultsHelpFormatter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from django.core.management.base import BaseCommand, CommandError, DjangoHelpFormatter

from infra_service import __version__
from infra_service.lib.commandline.progress import Progress

if TYPE_CHECKING:
    from argparse import Action
    from collections.abc import Callable, Iterator

    from django.core.management.base import CommandParser


class HelpFormatter(ArgumentDefaultsHelpFormatter, DjangoHelpFormatter):
    """A formatter that shows informative defaults and keeps indented lines unchanged."""

    def _get_help_string(self, action: Action) -> str | None:
        is_telling = action.default and not isinstance(action.default, bool)
        return super()._get_help_string(action) if is_telling else action.help

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(
            indent + line
            if line.startswith(" ")
            else super(HelpFormatter, self)._fill_text(line, width, indent)
            for line in text.splitlines()
        )


class HelpfulCommand(BaseCommand):
    """A command with examples in its ``--help``, and with Django's options last."""

    #: Examples of command lines, without ".venv/bin/python manage.py".
    examples: ClassVar[tuple[str, ...]] = ()

    def get_version(self) -> str:
        """Return the version of the service for ``--version``, instead of Django's version."""
        return __version__

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser of the options, with the examples after the description."""
        parser = super().create_parser(
            prog_name, subcommand, formatter_class=HelpFormatter, **kwargs
        )
        shown = "\n".join(f"  .venv/bin/python manage.py {example}" for example in self.examples)
        parser.description = f"{parser.description}\n\nexamples:\n{shown}"
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command.

        Raises:
            CommandError: an argument that must be text is not UTF-8.
        """
        try:
            return super().execute(*args, **options)
        except UnicodeEncodeError as error:
            # Lone surrogates represent the bytes of such an argument. Databases reject them.
            if error.encoding != "utf-8":
                raise
            raise CommandError("an argument is not UTF-8 text") from error


class ServiceCommand(HelpfulCommand):
    """A command with a result as text or JSON.

    ``self.stderr.write`` is for errors, and is red on a terminal.
    """

    # Run only the checks of the settings. The checks of the code load every view, which would
    # double the start-up time. The commands check and migrate run them.
    requires_system_checks = ["settings"]
    _as_json = False
    _progress: Progress | None = None

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser of the options, with ``--json``."""
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        self._as_json = options["json"]
        return super().execute(*args, **options)

    def report(self, outcome: dict[str, Any], *lines: str) -> None:
        """Print the result: the outcome with ``--json``, otherwise the lines.

        A command that prints a new secret calls this method in the transaction of the change. If
        the output fails, the change is rolled back. The flush also shows results at once.
        """
        self._clear_bar()
        self.stdout.write(json.dumps(outcome) if self._as_json else "\n".join(lines))
        self.stdout.flush()

    def note(self, line: str) -> None:
        """Write a line that is not an error to standard error."""
        self._clear_bar()
        self.stderr.write(line, style_func=str)

    def problem(self, line: str) -> None:
        """Write a warning to standard error. The command continues."""
        self._clear_bar()
        self.stderr.write(line)

    @contextmanager
    def progress(
        self, unit: str, total: Callable[[], int | None] = lambda: None
    ) -> Iterator[Progress]:
        """Count the progress of the block, with a bar on a terminal without ``--json``.

        ``total`` is called only for a bar, because it may count rows.

        Raises:
            KeyboardInterrupt: the block was interrupted. The message contains the progress.
        """
        terminal = self.stderr if self.stderr.isatty() and not self._as_json else None
        self._progress = Progress(unit, None if terminal is None else total(), terminal)
        try:
            yield self._progress
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"after {self._progress}") from None
        finally:
            self._progress.close()
            self._progress = None

    def _clear_bar(self) -> None:
        if self._progress is not None:
            self._progress.clear_bar()
