"""The databases that a run migrates once: the tests' own and those of live servers are copies.

Migrating takes three seconds, a copy some hundredths. The processes of a run share a directory;
whichever first needs a template makes it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import os
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from django.db import connection

from tests.support.installation import Installation

_VARIABLE = "DATABASE_TEMPLATES"
_PASSWORD = "DJANGO_SUPERUSER_PASSWORD"


def begin() -> None:
    """Let this process, and those that it starts from now on, share templates until its end."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="infra-templates-")
        atexit.register(_remove)


@functools.cache
def migrated() -> Installation:
    """Return one whose database has no row of ours."""
    with _template("migrated") as (template, is_new):
        if is_new:
            template.create_database()
            template.manage("migrate", "--verbosity", "0")
    return template


@functools.cache
def with_operator() -> Installation:
    """Return one with the superuser ``operator``, whose password stands in its environment."""
    original = migrated()
    with _template("with_operator") as (template, is_new):
        password = template.directory / "password"
        if is_new:
            template.copy_database(original)
            template.make_operator()
            password.write_text(template.environment[_PASSWORD])
        template.environment[_PASSWORD] = password.read_text()
    return template


@contextlib.contextmanager
def copied_for_tests() -> Iterator[None]:
    """Let the tests of this process use a copy of the migrated database, SQLite's in memory."""
    template, settings = migrated(), connection.settings_dict
    if connection.vendor == "sqlite":
        settings["NAME"] = "file:tests?mode=memory&cache=shared"
        connection.ensure_connection()
        with contextlib.closing(sqlite3.connect(template.database)) as original:
            original.backup(connection.connection)
        yield
        return
    copy = Installation(template.directory, database_name=f"tests_{secrets.token_hex(6)}")
    copy.copy_database(template)
    settings["NAME"] = copy.database
    try:
        yield
    finally:
        connection.close()
        # Else it would look for its connections to the end, and tell that they are lost.
        connection.close_pool()  # type: ignore[attr-defined]
        copy.drop_database()


@contextlib.contextmanager
def _template(name: str) -> Iterator[tuple[Installation, bool]]:
    """Give a template, and whether it is still to be made, which only one process does."""
    begin()
    home = Path(os.environ[_VARIABLE]) / name
    home.mkdir(exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = home / "made"
        yield _in(home), not made.exists()
        made.touch()


def _in(home: Path) -> Installation:
    return Installation(home, database_name=f"{home.parent.name}_{home.name}")


def _remove() -> None:
    directory = Path(os.environ.pop(_VARIABLE))
    for home in directory.iterdir():
        _in(home).drop_database()
    shutil.rmtree(directory)
