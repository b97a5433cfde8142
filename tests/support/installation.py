"""An installation of the service for tests: code, settings and a separate database."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from environ import Env

from tests.support import postgres

ROOT = Path(__file__).resolve().parents[2]
# Starting Python and Django takes longer than most commands.
_MANAGE = """
import gc
gc.disable()  # imports leave little garbage
import io, json, sys, django
from django.core.management import call_command
from django.db import connections
django.setup()
gc.freeze()
gc.enable()
printed = []
for name, *arguments in json.loads(sys.argv[1]):
    out = io.StringIO()
    call_command(name, *arguments, stdout=out)
    printed.append(out.getvalue())
connections.close_all()
print(json.dumps(printed))
gc.freeze()  # else Python walks through all that was loaded, for a fifth of a second
"""


class Installation:
    """An installation without a running server. Its database lives as long as ``directory``.

    The database is SQLite, or a new database on the PostgreSQL in ``DATABASE_URL``.
    """

    #: The directory of the code.
    root = ROOT

    def __init__(self, directory: Path, database_name: str = "", **environment: str) -> None:
        self.directory = directory
        self.environment = {
            **{k: v for k, v in os.environ.items() if k != "DATABASE_URL"},
            "VAR_DIR": str(directory),
            "SECRET_KEY": secrets.token_urlsafe(50),
            "STATE_ENCRYPTION_KEYS": base64.b64encode(secrets.token_bytes(32)).decode(),
            "DJANGO_SETTINGS_MODULE": "infra_service.settings",
            **environment,
        }
        self._database_name = ""
        self.brings_database = "DATABASE_URL" in environment
        if not self.brings_database and (url := os.environ.get("DATABASE_URL")):
            self._database_name = database_name or f"live_{secrets.token_hex(6)}"
            server, _, _ = url.rpartition("/")
            self.environment["DATABASE_URL"] = f"{server}/{self._database_name}"

    @property
    def database(self) -> str:
        """Return the database's name, which is a file with SQLite."""
        return self._database_name or str(self.directory / "db.sqlite3")

    def database_settings(self) -> dict[str, Any]:
        """Return Django's settings of its database and role."""
        if url := self.environment.get("DATABASE_URL"):
            given = Env.db_url_config(url)
            return {name: given[name] for name in ("HOST", "PORT", "USER", "PASSWORD", "NAME")}
        return {"NAME": self.database}

    def manage(self, *command: str) -> str:
        """Run a management command on its database; return its output."""
        return self.manage_all(command)[0]

    def manage_all(self, *commands: Sequence[str]) -> list[str]:
        """Run management commands on its database in a single process, for speed.

        Return the output of each.
        """
        done = subprocess.run(
            [sys.executable, "-c", _MANAGE, json.dumps(commands)],
            cwd=self.root,
            env=self.environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        printed: list[str] = json.loads(done.stdout)
        return printed

    def create_database(self, options: str = "") -> None:
        """Create its database on PostgreSQL, empty unless options differ."""
        if self._database_name:
            self._at_the_server(f'CREATE DATABASE "{self._database_name}" {options}')

    def copy_database(self, original: Installation) -> None:
        """Create its database as a copy of another database without connections."""
        self.create_database(f'TEMPLATE "{original.database}"')
        if not self._database_name:
            shutil.copy(original.database, self.directory)

    def restore_database(self, original: Installation) -> None:
        """Fill its database, on another PostgreSQL, from a dump of a database on the tests' own."""
        programs = postgres.binaries(self.directory)
        whole = [programs / "pg_dump", original.environment["DATABASE_URL"]]
        dump = subprocess.run(whole, check=True, stdout=subprocess.PIPE)
        fill = [programs / "psql", "-q", "-v", "ON_ERROR_STOP=1", self.environment["DATABASE_URL"]]
        subprocess.run(fill, check=True, input=dump.stdout, stdout=subprocess.DEVNULL)

    def migrate(self) -> None:
        """Create its database, migrate it, and make the user ``operator``."""
        self.create_database()
        self.make_operator(("migrate", "--verbosity", "0"))

    def make_operator(self, *before: Sequence[str]) -> None:
        """Run commands, and make the superuser ``operator``; the environment has the password."""
        self.environment["DJANGO_SUPERUSER_PASSWORD"] = secrets.token_urlsafe(12)
        names = ("--username", "operator", "--email", "operator@example.com")
        self.manage_all(*before, ("createsuperuser", "--noinput", *names))

    def drop_database(self) -> None:
        """Drop its database on PostgreSQL, even if it is in use or does not exist."""
        if self._database_name:
            self._at_the_server(f'DROP DATABASE IF EXISTS "{self._database_name}" WITH (FORCE)')

    def allow_connections(self, *, allowed: bool) -> None:
        """Let PostgreSQL accept or reject new connections to its database."""
        self._at_the_server(f'ALTER DATABASE "{self._database_name}" ALLOW_CONNECTIONS {allowed}')

    def _at_the_server(self, statement: str) -> None:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(statement)
