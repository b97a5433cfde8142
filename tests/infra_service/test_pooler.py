"""A real pgbouncer in transaction mode, with fewer connections than the service has."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.backend import Backend, document
from tests.support import postgres
from tests.support.installation import ROOT
from tests.support.server import LiveServer
from tests.support.waiting import wait_until

_PROGRAM = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
pytestmark = [
    pytest.mark.skipif(_PROGRAM is None, reason="pgbouncer is not installed"),
    pytest.mark.skipif(
        not os.environ.get("DATABASE_URL", "").startswith("postgres"),
        reason="pgbouncer is for PostgreSQL",
    ),
]
_INI = """
[databases]
* = host={host} port={database_port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 200
"""


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    return False


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a database behind pgbouncer."""
    configuration = Path(tmp_path_factory.mktemp("pgbouncer")) / "pgbouncer.ini"
    with postgres.running() as database:
        host = urlsplit(database.url).hostname
        port = postgres.free_port()
        configuration.write_text(_INI.format(host=host, database_port=database.port, port=port))
        with configuration.open() as read, (configuration.parent / "log").open("w") as log:
            unknown = pwd.getpwnam("nobody")
            user = {"user": unknown.pw_uid, "group": unknown.pw_gid} if os.getuid() == 0 else {}
            # Its own user may not read the tests' directory, so the file is handed over open.
            assert _PROGRAM is not None
            process = subprocess.Popen(
                [_PROGRAM, "/dev/stdin"], stdin=read, stdout=log, stderr=log, **user
            )
        try:
            wait_until(lambda: _listens(port))
            yield f"postgres://postgres@127.0.0.1:{port}/postgres"
        finally:
            process.terminate()
            process.wait()


@pytest.fixture(scope="module")
def served(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A service without settings for the pooler, whose database is migrated through it."""
    server = LiveServer(tmp_path_factory.mktemp("served"), DATABASE_URL=address)
    with contextlib.closing(server):
        server.migrate()
        server.start()
        yield server


def test_it_works_without_a_setting(served: LiveServer) -> None:
    token = served.token("state:read", "state:write")

    def work(_number: int) -> list[int]:
        backend, lock = Backend(served, token), str(uuid.uuid4())
        answers = [backend.lock(lock)]
        answers += [backend.push(document(serial), lock) for serial in range(1, 4)]
        answers += [backend.get() for _ in range(3)] + [backend.unlock(lock)]
        return [answer.status for answer in answers]

    with ThreadPoolExecutor(8) as pool:
        statuses = {status for found in pool.map(work, range(8)) for status in found}

    assert statuses == {200}


def test_wrong_setting_is_reported_at_startup(served: LiveServer) -> None:
    """pgbouncer from 1.21 on may know of prepared statements; then nothing is wrong with it."""
    served.environment["DATABASE_PREPARE_THRESHOLD"] = "2"
    try:
        done = subprocess.run(
            [sys.executable, ROOT / "manage.py", "migrate", "--verbosity", "0"],
            env=served.environment,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        del served.environment["DATABASE_PREPARE_THRESHOLD"]

    version = subprocess.run([str(_PROGRAM), "-V"], capture_output=True, text=True, check=True)
    major, minor = version.stdout.split()[1].split(".")[:2]
    if (int(major), int(minor)) < (1, 21):
        assert done.returncode != 0
        assert "infra_service.E005" in done.stderr
