"""The databases that a run migrates once: the tests' own and those of live servers are copies.

Migrating takes three seconds, a copy some hundredths. Only SQLite's databases in memory are
migrated in each process. The processes of a run share a directory; whichever first needs a
template makes it.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import fcntl
import functools
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

_ROOT = Path(__file__).resolve().parent.parent
_VARIABLE = "DATABASE_TEMPLATES"


@dataclass(frozen=True)
class Template:
    """A migrated database that nobody writes to: one of PostgreSQL's, or a file of SQLite's."""

    directory: Path
    #: Its name on the PostgreSQL that ``DATABASE_URL`` names; empty where that is SQLite.
    name: str

    @property
    def file(self) -> Path:
        return self.directory / "db.sqlite3"

    @property
    def password(self) -> str:
        """The password of the user ``operator``, where it has one."""
        return (self.directory / "password").read_text()

    def create(self, options: str = "") -> None:
        """Create its database on PostgreSQL, which SQLite does by itself."""
        if self.name:
            with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
                connection.execute(f'CREATE DATABASE "{self.name}" {options}')

    def manage(self, *command: str, **environment: str) -> None:
        """Run a management command on it, with the service's own settings."""
        if self.name:
            server, _, _ = os.environ["DATABASE_URL"].rpartition("/")
            environment["DATABASE_URL"] = f"{server}/{self.name}"
        subprocess.run(
            [sys.executable, _ROOT / "manage.py", *command],
            check=True,
            stdout=subprocess.DEVNULL,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "infra_service.settings",
                "VAR_DIR": str(self.directory),
                "SECRET_KEY": secrets.token_urlsafe(50),
                "STATE_ENCRYPTION_KEYS": base64.b64encode(secrets.token_bytes(32)).decode(),
                **environment,
            },
        )


def begin() -> None:
    """Let this process, and those that it starts from now on, share templates until its end."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="infra-templates-")
        atexit.register(_remove)


@functools.cache
def migrated() -> Template:
    """Return a database without a row of ours."""
    with _template("migrated") as (template, is_new):
        if is_new:
            template.create()
            template.manage("migrate")
    return template


@functools.cache
def with_operator() -> Template:
    """Return one with the superuser ``operator``."""
    original = migrated()
    with _template("with_operator") as (template, is_new):
        if is_new:
            template.create(f'TEMPLATE "{original.name}"')
            if original.file.exists():
                shutil.copy(original.file, template.file)
            password = secrets.token_urlsafe(12)
            (template.directory / "password").write_text(password)
            names = ("--username", "operator", "--email", "operator@example.com")
            template.manage(
                "createsuperuser", "--noinput", *names, DJANGO_SUPERUSER_PASSWORD=password
            )
    return template


@contextlib.contextmanager
def _template(name: str) -> Iterator[tuple[Template, bool]]:
    """Give a template, and whether it is still to be made, which only one process does."""
    begin()
    home = Path(os.environ[_VARIABLE]) / name
    home.mkdir(exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = home / "made"
        yield Template(home, _name(home) if _on_postgresql() else ""), not made.exists()
        made.touch()


def _on_postgresql() -> bool:
    return os.environ.get("DATABASE_URL", "").startswith("postgres")


def _name(home: Path) -> str:
    return f"{home.parent.name}_{home.name}"


def _remove() -> None:
    directory = Path(os.environ.pop(_VARIABLE))
    if _on_postgresql():
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            for home in directory.iterdir():
                connection.execute(f'DROP DATABASE IF EXISTS "{_name(home)}"')
    shutil.rmtree(directory)
