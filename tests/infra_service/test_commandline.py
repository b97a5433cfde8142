"""Common features of all commands: help, ``--json``, progress bars, colours, and signals."""

import contextlib
import io
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand, OutputWrapper
from django.db import DataError, OperationalError

import manage
from apikeys.scopes import Scope
from infra_service import __version__
from infra_service.lib.commandline.base import HelpfulCommand, ServiceCommand
from infra_service.lib.commandline.overview import PURPOSES, ServiceUtility
from infra_service.lib.commandline.stopping import stopped_by_signals
from infra_service.lib.database.failures import DatabaseFull, DatabaseUnavailable, explanation_of
from tests.support.full_disk import run_without_log
from tests.support.installation import ROOT
from tests.support.terminal import Terminal

OURS = ("apikeys", "infra_service", "states", "workloads")
COMMANDS = sorted(name for name, app in get_commands().items() if app in OURS)
DJANGOS = {
    option
    for action in BaseCommand().create_parser("manage.py", "x")._actions
    for option in action.option_strings
} - {"--help"}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_examples(name: str) -> None:
    command = load_command_class(get_commands()[name], name)
    parser = command.create_parser("manage.py", name)
    text = parser.format_help()

    assert isinstance(command, HelpfulCommand)
    assert command.examples
    for example in command.examples:
        assert f"  .venv/bin/python manage.py {example}\n" in text
        called, *arguments = shlex.split(example.partition("<")[0])
        assert called == name
        parser.parse_args(arguments)
    options = text.partition("\noptions:\n")[2]
    shown = re.findall(r"^  (?:-\w(?: \S+)?, )?(--[\w-]+)", options, re.MULTILINE)
    own = [option for option in shown if option not in DJANGOS]
    assert shown[: len(own)] == own
    assert shown[-1] in DJANGOS


@pytest.mark.parametrize("command_line", ["version", "--version", "seed_demo --version"])
def test_the_version_is_ours(
    command_line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", sys.stderr)  # main() replaces it
    monkeypatch.setattr(sys, "argv", ["manage.py", *command_line.split()])

    with contextlib.suppress(SystemExit):  # as argparse ends
        manage.main()

    assert capsys.readouterr().out == f"{__version__}\n"


def test_a_terminal_that_is_not_utf8_shows_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, "ascii"))
    monkeypatch.setattr(sys, "stderr", sys.stderr)  # main() replaces it
    monkeypatch.setattr(sys, "argv", ["manage.py", "version"])
    monkeypatch.setattr(manage, "__version__", "ü")

    manage.main()

    assert shown.getvalue() == rb"\xfc" + b"\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_is_no_traceback(unbuffered: str) -> None:
    """As in ``manage.py list_credentials | head -1``."""
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        [sys.executable, "manage.py", "version"], env={"PYTHONUNBUFFERED": unbuffered},
        stdout=writer, stderr=subprocess.PIPE, text=True, cwd=ROOT, timeout=60, check=False,
    )  # fmt: skip

    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_a_closed_output_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "version"],
        preexec_fn=lambda: os.close(1), stderr=subprocess.PIPE, text=True, cwd=ROOT, timeout=60,
        check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert done.stderr == "The standard output is closed. Redirect it, for example to /dev/null.\n"


def test_a_full_disk_is_no_traceback() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "manage.py", "version"],
            stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, timeout=60, check=False,
        )  # fmt: skip

    assert (done.returncode, done.stderr) == (1, "No space left on device\n")


def test_errors_of_standard_error_do_not_stop_a_command() -> None:
    """As in ``manage.py index_states --watch 2>>file`` on a full disk."""
    writes = (
        "import sys, manage\n"
        "from infra_service.lib.commandline.base import ServiceCommand\n"
        "class Command(ServiceCommand):\n"
        "    def handle(self, *_, **__):\n"
        "        self.problem('damaged'); self.note('next'); self.report({}, 'completed')\n"
        "def run(*_, **__): Command().run_from_argv(['manage.py', 'x'])\n"
        "manage._run = run; manage.main()\n"
    )

    done = run_without_log(writes)

    assert (done.returncode, done.stdout) == (0, "completed\n")


def test_a_closed_standard_error_does_not_stop_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "help", "--commands"],
        preexec_fn=lambda: os.close(2), stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=60,
        check=False,
    )  # fmt: skip

    assert done.returncode == 0
    assert "issue_token" in done.stdout


def test_a_full_quota_is_no_traceback() -> None:
    full = "import errno, manage\ndef run(*_, **__): raise OSError(errno.EDQUOT, 'full')\n"

    done = subprocess.run(
        [sys.executable, "-c", f"{full}manage._run = run; manage.main()"],
        capture_output=True, text=True, cwd=ROOT, timeout=60, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (1, "full\n")


def test_help_lists_our_commands_by_purpose_and_then_those_of_django() -> None:
    text = ServiceUtility(["manage.py"]).main_help_text()

    ours, _, others = text.partition("[Django]")
    listed = dict(re.findall(r"^    (\w+) +(\S.*)$", ours, re.MULTILINE))
    assert set(listed) == {*COMMANDS, "migrate", "check"}
    assert re.findall(r"^\[(.+)\]$", ours, re.MULTILINE) == list(PURPOSES)
    assert set(re.findall(r"\w+", others)) == get_commands().keys() - listed.keys()
    assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize("arguments", [("help",), (), ("--help",)])
def test_help_without_settings_names_the_missing_setting(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments], env={"VAR_DIR": str(tmp_path)},
        capture_output=True, text=True, cwd=ROOT, timeout=60, check=True,
    )  # fmt: skip

    assert "    housekeeping            Delete data after its retention period\n" in done.stdout
    problem = "The settings are not valid: Set the SECRET_KEY environment variable."
    assert f"\n{problem} See docs/reference/settings.md.\n" in done.stdout


def test_help_of_a_command_and_the_names_of_all_are_those_of_django(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        ServiceUtility(["manage.py", "housekeeping", "--help"]).execute()
    own = capsys.readouterr().out
    ServiceUtility(["manage.py", "help", "housekeeping"]).execute()
    assert capsys.readouterr().out == own
    ServiceUtility(["manage.py", "help", "--commands"]).execute()
    assert capsys.readouterr().out.split() == sorted(get_commands())


def test_help_shows_scopes_and_defaults() -> None:
    command = load_command_class("apikeys", "issue_token")
    text = command.create_parser("manage.py", "issue_token").format_help()

    for scope in Scope:
        assert f"  {scope.value:<18}{scope.label}\n" in text
    assert "(default: personal)" in " ".join(text.split())  # lines are wrapped
    assert "(default: None)" not in text
    assert "(default: False)" not in text


class Counting(ServiceCommand):
    """A command with a progress bar, a note and a problem."""

    stops = False

    def handle(self, *_args: Any, **_options: Any) -> None:
        with self.progress("things", lambda: 3) as bar:
            bar.advance(2)
            self.note("noted")
            self.problem("wrong")
            if self.stops:
                raise KeyboardInterrupt
            bar.advance(2)
        self.report({"things": 4}, "4 things")


def test_terminal_shows_a_bar(each_count_is_drawn: None) -> None:
    out, terminal = io.StringIO(), Terminal()

    call_command(Counting(), stdout=out, stderr=terminal)

    first, second, noted, wrong, last = terminal.drawn
    assert first.startswith("things   0% |")
    assert " 0 of 3, ?/s, ? left" in first
    assert second.startswith("things  67% |")
    assert (noted, wrong) == ("noted", "wrong")
    # More than there was at the beginning.
    assert " 4 of 4, " in last
    # The bar leaves nothing behind.
    assert terminal.getvalue().endswith(" \r")
    assert out.getvalue() == "4 things\n"


@pytest.mark.parametrize(("err", "options"), [(Terminal(), ["--json"]), (io.StringIO(), [])])
def test_output_without_a_terminal_has_no_bar(err: io.StringIO, options: list[str]) -> None:
    call_command(Counting(), *options, stdout=io.StringIO(), stderr=err)

    assert err.getvalue() == "noted\nwrong\n"


def test_only_errors_are_red() -> None:
    command, terminal = Counting(stdout=io.StringIO()), Terminal()
    command.stderr = OutputWrapper(terminal)
    command.stderr.style_func = lambda text: f"<red>{text}</red>"

    command.handle()

    assert terminal.getvalue().count("<red>") == 1
    assert "<red>wrong\n</red>" in terminal.getvalue()


@pytest.mark.parametrize(("err", "message"), [
    (Terminal(), "after 2 of 3 things"), (io.StringIO(), "after 2 things"),
])  # fmt: skip
def test_interrupt_reports_the_progress(err: io.StringIO, message: str) -> None:
    command = Counting()
    command.stops = True

    with pytest.raises(KeyboardInterrupt, match=f"^{message}$"):
        call_command(command, stderr=err)


def test_a_second_interrupt_is_not_waited_for() -> None:
    before, stops = signal.getsignal(signal.SIGINT), threading.Event()

    def wait() -> None:
        with stopped_by_signals(stops.set):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError("it was interrupted before this")

    with pytest.raises(KeyboardInterrupt):
        wait()

    assert stops.wait(60)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_stops_a_wait_that_it_does_not_interrupt() -> None:
    """Python handles a signal at the start of a wait as late as a signal to another thread."""
    stops = threading.Event()

    def kill() -> None:
        time.sleep(0.2)  # the wait has begun
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    with stopped_by_signals(stops.set):
        threading.Thread(target=kill).start()
        assert stops.wait(60)


def test_interrupt_prints_a_line_and_exits_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(_arguments: list[str], **_kind: bool) -> None:
        raise KeyboardInterrupt("after 2 of 3 things")

    monkeypatch.setattr(sys, "stderr", sys.stderr)  # main() replaces it
    monkeypatch.setattr(manage, "_run", stopped)
    with pytest.raises(SystemExit) as ended:
        manage.main()

    assert ended.value.code == 130
    assert capsys.readouterr().err == "Stopped after 2 of 3 things; what was done stays done.\n"


@pytest.mark.parametrize("name", ["SECRET_KEY", "STATE_ENCRYPTION_KEYS"])
def test_missing_key_is_reported_once(name: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != name}
    environment["DJANGO_SETTINGS_MODULE"] = "infra_service.settings"

    done = subprocess.run(
        [sys.executable, "manage.py", "verify_states"],
        cwd=ROOT, env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 1
    assert done.stderr == (
        f"Set the {name} environment variable. See docs/reference/settings.md.\n"
    )
    assert done.stdout == ""


def missing_column() -> sqlite3.Error:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute("SELECT unknown")
        except sqlite3.Error as error:
            return error
    raise AssertionError


@pytest.mark.parametrize(
    ("cause", "start"),
    [
        (psycopg.OperationalError("closed\nmore"), f"{DatabaseUnavailable.meaning} Check "),
        (psycopg.errors.DiskFull("closed"), f"{DatabaseFull.meaning} Check "),
        (psycopg.errors.UndefinedTable("closed"), "The database is not ready for this command: "),
        (psycopg.errors.UndefinedColumn("closed"), "The database is not ready for this command: "),
        (missing_column(), "The database is not ready for this command: "),
    ],
)
def test_failures_of_the_database_are_a_sentence(cause: Exception, start: str) -> None:
    error = OperationalError("closed")
    error.__cause__ = cause
    explanation = explanation_of(error)
    assert explanation is not None
    assert explanation.startswith(start)
    assert str(cause).splitlines()[0] in explanation
    assert "more" not in explanation


def test_programming_errors_are_not_explained() -> None:
    error = DataError("division")
    error.__cause__ = psycopg.errors.DivisionByZero()
    assert explanation_of(error) is None


def run_on(database: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "infra_service.settings",
        "DATABASE_URL": database,
        "SECRET_KEY": "a key for this test, of the necessary length and variety",
    }
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT, env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip


def test_missing_table_is_explained_without_a_traceback(tmp_path: Path) -> None:
    empty = f"sqlite:///{tmp_path}/empty.sqlite3"

    assert run_on(empty, "verify_states").stderr == (
        "The database is not ready for this command: no such table: states_stateversion. Run "
        "'manage.py migrate', on PostgreSQL as the owner of the tables and followed by "
        "'manage.py grant_service_role'.\n"
    )
    assert "Traceback" in run_on(empty, "verify_states", "--traceback").stderr


def test_check_fails_without_the_database(tmp_path: Path) -> None:
    done = run_on(f"sqlite:///{tmp_path}/missing/db.sqlite3", "check", "--database", "default")

    assert done.returncode == 1
    assert done.stderr == (
        f"{DatabaseUnavailable.meaning} Check DATABASE_URL and the database (unable to open "
        "database file).\n"
    )
