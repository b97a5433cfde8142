"""A live server for tests: real gunicorn, real workers, a separate database."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.support import templates
from tests.support.installation import ROOT, Installation
from tests.support.postgres import free_port
from tests.support.waiting import wait_until


class LiveServer(Installation):
    """A running installation, on a free loopback port."""

    #: The program that responds.
    wsgi = "infra_service.wsgi"
    #: Its address, and the prefix of commands that run there.
    address = "127.0.0.1"
    launcher: Sequence[str] = ()

    def __init__(self, directory: Path, **environment: str) -> None:
        self.port = free_port()
        super().__init__(directory, **{"BIND": f"127.0.0.1:{self.port}", **environment})
        self.log = directory / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Return the process that started all other processes."""
        assert self._process is not None
        return self._process.pid

    def run_commands(self, *commands: Sequence[str]) -> list[str]:
        """Run commands; tests do it in their own process (conftest.py)."""
        return self.manage_all(*commands)

    def prepare(self) -> None:
        """Create its database with the user ``operator``: a copy of a migrated template."""
        if self.brings_database and (self.root != ROOT or not os.environ.get("DATABASE_URL")):
            self.migrate()  # by its own code, or because the PostgreSQL has no such template
            return
        template = templates.with_operator()
        name = "DJANGO_SUPERUSER_PASSWORD"
        self.environment[name] = template.environment[name]
        if self.brings_database:
            self.restore_database(template)
        else:
            self.copy_database(template)

    def tokens(self, *scopes: str) -> list[str]:
        """Issue a personal access token for each comma-separated list of scopes."""
        start = ("issue_token", "--user", "operator", "--name", "test", "--json", "--scopes")
        return [
            json.loads(text)["secret"] for text in self.run_commands(*((*start, s) for s in scopes))
        ]

    def token(self, *scopes: str) -> str:
        """Issue a personal access token."""
        return self.tokens(",".join(scopes))[0]

    def api_key(self, *scopes: str) -> str:
        """Create an API key. A module's fixture may do it repeatedly on the same server."""
        name = f"test {secrets.token_hex(6)}"
        options = ("--user", "operator", "--name", name, "--scopes", ",".join(scopes), "--json")
        (printed,) = self.run_commands(("seed_apikeys", *options))
        (made,) = json.loads(printed)["api_keys"]
        secret: str = made["secret"]
        return secret

    def start(self) -> None:
        """Start gunicorn as a process group, and wait until it is ready."""
        assert not self.is_running
        arguments = ("-c", "python:infra_service.gunicorn", self.wsgi)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.launcher, sys.executable, "-m", "gunicorn", *arguments],
                cwd=self.root,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.wait_until_ready(self._process)
        # The first worker responds before gunicorn has started the rest.
        wait_until(lambda: len(self.workers()) == int(self.environment.get("WEB_WORKERS", "2")))

    def wait_until_ready(self, process: subprocess.Popen[Any]) -> None:
        """Wait until this process's service responds, or fail with its log."""
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
        """Stop it like an operator, and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.ended()

    def signal(self, number: signal.Signals, *, to_all: bool = False) -> None:
        """Send a signal to gunicorn's master or, like a terminal, to its process group."""
        assert self._process is not None
        (os.killpg if to_all else os.kill)(self._process.pid, number)

    def ended(self) -> int:
        """Wait for its end, and return its exit code."""
        assert self._process is not None
        code = self._process.wait(60)
        self._process = None
        return code

    def kill(self) -> None:
        """Kill all its processes at once, like a power cut."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def close(self) -> None:
        """Stop it, and drop its database."""
        if self._process is not None:
            self.stop()
        self.drop_database()

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
        """Send a request on a new connection."""
        connection = http.client.HTTPConnection(self.address, self.port, timeout=timeout)
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
        """Return the reason of the error form."""
        reason: str = self.json()["error"]["details"][0]["reason"]
        return reason


@contextlib.contextmanager
def live_server(**environment: str) -> Iterator[LiveServer]:
    """Run a server in a separate directory during the block."""
    with tempfile.TemporaryDirectory(prefix="infra-live-") as directory:
        server = LiveServer(Path(directory), **environment)
        with running(server):
            yield server


@contextlib.contextmanager
def running(server: LiveServer) -> Iterator[None]:
    """Prepare this server and run it during the block."""
    with contextlib.closing(server):
        server.prepare()
        server.start()
        yield
