"""A live server for tests: real gunicorn, real workers, a database of its own."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg

from tests import templates
from tests.postgres import free_port

ROOT = Path(__file__).resolve().parent.parent
# Starting Python and Django takes longer than most commands.
_MANAGE = """
import gc, io, json, sys, django
from django.core.management import call_command
from django.db import connections
django.setup()
printed = []
for name, *arguments in json.loads(sys.argv[1]):
    out = io.StringIO()
    call_command(name, *arguments, stdout=out)
    printed.append(out.getvalue())
connections.close_all()
print(json.dumps(printed))
gc.freeze()  # else Python walks through all that was loaded, for a fifth of a second
"""


class LiveServer:
    """One service on a free loopback port. Its database lives as long as ``directory``.

    The database is SQLite, or a new database on the PostgreSQL that ``DATABASE_URL`` names.
    """

    #: Where the code is, and what answers.
    root, wsgi = ROOT, "infra_service.wsgi"

    def __init__(self, directory: Path, **environment: str) -> None:
        self.directory = directory
        self.port = free_port()
        self.environment = {
            **{k: v for k, v in os.environ.items() if k != "DATABASE_URL"},
            "VAR_DIR": str(directory),
            "SECRET_KEY": secrets.token_urlsafe(50),
            "STATE_ENCRYPTION_KEYS": base64.b64encode(secrets.token_bytes(32)).decode(),
            "DJANGO_SETTINGS_MODULE": "infra_service.settings",
            "BIND": f"127.0.0.1:{self.port}",
            **environment,
        }
        self._database_name = ""
        self.brings_database = "DATABASE_URL" in environment
        if not self.brings_database and (url := os.environ.get("DATABASE_URL")):
            self._database_name = f"live_{secrets.token_hex(6)}"
            server, _, _ = url.rpartition("/")
            self.environment["DATABASE_URL"] = f"{server}/{self._database_name}"
        self.log = directory / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> str:
        """The database's name, which is a file's where it is SQLite."""
        return self._database_name or str(self.directory / "db.sqlite3")

    @property
    def pid(self) -> int:
        """The process that started all others."""
        assert self._process is not None
        return self._process.pid

    def manage(self, *command: str) -> str:
        """Run a management command on the server's database and return what it prints."""
        return self.manage_all(command)[0]

    def manage_all(self, *commands: Sequence[str]) -> list[str]:
        """Run management commands on the server's database, in one process, for speed.

        Return what each of them prints.
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

    def issue(self, *commands: Sequence[str]) -> list[str]:
        """Run commands; tests do it without another process (conftest.py)."""
        return self.manage_all(*commands)

    def prepare(self) -> None:
        """Make its database, with the user ``operator``: a copy of one that was migrated once."""
        if self.brings_database:
            self.migrate()
            return
        template = templates.with_operator()
        self.environment["DJANGO_SUPERUSER_PASSWORD"] = template.password
        self.create_database(f'TEMPLATE "{template.name}"')
        if not self._database_name:
            shutil.copy(template.file, self.directory)

    def migrate(self) -> None:
        """Migrate the database and make the user ``operator``."""
        self.create_database()
        self.environment["DJANGO_SUPERUSER_PASSWORD"] = secrets.token_urlsafe(12)
        names = ("--username", "operator", "--email", "operator@example.com")
        self.manage_all(("migrate", "--verbosity", "0"), ("createsuperuser", "--noinput", *names))

    def create_database(self, options: str = "") -> None:
        """Create its database where PostgreSQL is to be told so, empty unless options say more."""
        if self._database_name:
            with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
                connection.execute(f'CREATE DATABASE "{self._database_name}" {options}')

    def tokens(self, *scopes: str) -> list[str]:
        """Issue a personal access token for each comma-separated list of scopes."""
        start = ("issue_token", "--user", "operator", "--name", "test", "--json", "--scopes")
        return [json.loads(text)["secret"] for text in self.issue(*((*start, s) for s in scopes))]

    def token(self, *scopes: str) -> str:
        """Issue a personal access token."""
        return self.tokens(",".join(scopes))[0]

    def api_key(self, *scopes: str) -> str:
        """Make an API key. A fixture of a module may be made again on one server."""
        name = f"test {secrets.token_hex(6)}"
        options = ("--user", "operator", "--name", name, "--scopes", ",".join(scopes), "--json")
        (printed,) = self.issue(("seed_apikeys", *options))
        (made,) = json.loads(printed)["api_keys"]
        secret: str = made["secret"]
        return secret

    def start(self) -> None:
        """Start gunicorn, in a process group of its own, and wait until it is ready."""
        assert not self.is_running
        arguments = ("-c", "python:infra_service.gunicorn", self.wsgi)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", *arguments],
                cwd=self.root,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.wait_until_ready(self._process)

    def wait_until_ready(self, process: subprocess.Popen[Any]) -> None:
        """Wait until the service that this process is answers, or fail with its log."""
        for _ in range(1200):
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.request("GET", "/readyz").status == 200:
                    return
            if process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(self.log.read_text())

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def workers(self) -> list[int]:
        """Return the process ids of gunicorn's workers."""
        assert self._process is not None
        pid = self._process.pid
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def stop(self) -> int:
        """End it as an operator does, and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.ended()

    def signal(self, number: signal.Signals, *, to_all: bool = False) -> None:
        """Send a signal to gunicorn's master, or as a terminal does to every process of it."""
        assert self._process is not None
        (os.killpg if to_all else os.kill)(self._process.pid, number)

    def ended(self) -> int:
        """Wait for its end, and return its exit code."""
        assert self._process is not None
        code = self._process.wait(60)
        self._process = None
        return code

    def kill(self) -> None:
        """End it as a power cut does: every process of it at once."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def close(self) -> None:
        """End it, and drop its database."""
        if self._process is not None:
            self.stop()
        if self._database_name:
            with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
                connection.execute(f'DROP DATABASE IF EXISTS "{self._database_name}" WITH (FORCE)')

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        token: str = "",
        headers: dict[str, str] | None = None,
        timeout: float = 60,
    ) -> Answer:
        """Send one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(connection):
            given = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request(method, path, body, {**given, **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())


class Answer:
    """An HTTP answer, read to its end."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        """The reason of the error form."""
        reason: str = self.json()["error"]["details"][0]["reason"]
        return reason


@contextlib.contextmanager
def live_server(**environment: str) -> Iterator[LiveServer]:
    """Run a server in a directory of its own for as long as the block."""
    with tempfile.TemporaryDirectory(prefix="infra-live-") as directory:
        server = LiveServer(Path(directory), **environment)
        with running(server):
            yield server


@contextlib.contextmanager
def running(server: LiveServer) -> Iterator[None]:
    """Prepare this server and run it for as long as the block."""
    with contextlib.closing(server):
        server.prepare()
        server.start()
        yield
