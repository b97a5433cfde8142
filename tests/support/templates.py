"""Template databases of a run, migrated once; databases of tests and servers are copies.

A migration takes three seconds, a copy some hundredths. The processes of a run share a directory;
the first that needs a template creates it.
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
    """Share templates between this process and its children, until its end."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="infra-templates-")
        atexit.register(_remove)


@functools.cache
def migrated() -> Installation:
    """Return a migrated template without rows of ours."""
    with _template("migrated") as (template, is_new):
        if is_new:
            template.create_database()
            template.manage("migrate", "--verbosity", "0")
    return template


@functools.cache
def with_operator() -> Installation:
    """Return a template with the superuser ``operator``, whose password is in its environment."""
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
    """Use a copy of the migrated database for the tests of this process; SQLite's is in memory."""
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
        # Otherwise it would check its connections to the end, and report their loss.
        connection.close_pool()  # type: ignore[attr-defined]
        copy.drop_database()


@contextlib.contextmanager
def _template(name: str) -> Iterator[tuple[Installation, bool]]:
    """Yield a template, and whether it must be created, which only a single process does."""
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
