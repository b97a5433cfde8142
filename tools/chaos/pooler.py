"""pgbouncer in transaction mode: Debian's version, and the program in ``PGBOUNCER``."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tests.support.postgres import free_port
from tools.chaos.databases import PORT, Postgres
from tools.chaos.network import ADDRESSES
from tools.chaos.programs import UNPRIVILEGED, Program

_INI = """
[databases]
* = host={host} port={database_port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 500
default_pool_size = 8
{more}
"""


class Pooler:
    """pgbouncer in front of a PostgreSQL server."""

    def __init__(self, program: str, directory: Path, database: Postgres, more: str = "") -> None:
        self.port = free_port()
        directory.mkdir()
        configuration = directory / "pgbouncer.ini"
        host = ADDRESSES[database.host]
        configuration.write_text(
            _INI.format(host=host, database_port=PORT, port=self.port, more=more)
        )
        words = (*UNPRIVILEGED, program, configuration)
        self.program = Program(*words, log=directory / "pgbouncer.log")
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"


def version_of(program: str) -> tuple[int, ...]:
    """Return the version of a pgbouncer program."""
    output = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"(\d+)\.(\d+)", output)
    assert found is not None
    return tuple(map(int, found.groups()))


def programs() -> list[str]:
    """Return the installed pgbouncer, and the program in ``PGBOUNCER`` if it is set."""
    return ["pgbouncer", *filter(None, [os.environ.get("PGBOUNCER")])]
