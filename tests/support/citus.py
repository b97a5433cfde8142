"""Databases on a Citus cluster for tests: ``CITUS_URL`` names a database on its coordinator.

The database needs the extension and registered workers. The role in the URL creates databases on
all servers.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import conninfo, sql

from tests.support.server import LiveServer

needs_citus = pytest.mark.skipif(
    "CITUS_URL" not in os.environ,
    reason="CITUS_URL does not name a database on the coordinator of a Citus cluster",
)


class CitusServer(LiveServer):
    """A live server whose database is distributed across the workers of the cluster."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self._name = f"live_{secrets.token_hex(6)}"
        url = f"{os.environ['CITUS_URL'].rpartition('/')[0]}/{self._name}"
        super().__init__(directory, **{"DATABASE_URL": url, **environment})
        with psycopg.connect(os.environ["CITUS_URL"]) as coordinator:
            found = coordinator.execute("SELECT nodename, nodeport, groupid > 0 FROM pg_dist_node")
            self._nodes = found.fetchall()

    def prepare(self) -> None:
        """Create, migrate and distribute the database on all servers, and create the operator."""
        self._on_all_servers("CREATE DATABASE {}")
        for host, port, _ in self._nodes:
            with self.connect(host=host, port=port) as node:
                node.execute("CREATE EXTENSION citus")
        with self.connect() as coordinator:
            for host, port, is_worker in sorted(self._nodes, key=lambda node: node[2]):
                function = "citus_add_node" if is_worker else "citus_set_coordinator_host"
                coordinator.execute(f"SELECT {function}(%s, %s)", [host, port])
        self.make_operator(("migrate", "--verbosity", "0"), ("distribute",))

    def run_commands(self, *commands: Sequence[str]) -> list[str]:
        """Run commands in a separate process, because the tests may use another database."""
        return self.manage_all(*commands)

    def drop_database(self) -> None:
        self._on_all_servers("DROP DATABASE IF EXISTS {} WITH (FORCE)")

    def connect(self, **changes: Any) -> psycopg.Connection[Any]:
        """Connect to the database on the coordinator, or on another server."""
        url = self.environment["DATABASE_URL"]
        return psycopg.connect(conninfo.make_conninfo(url, **changes), autocommit=True)

    def _on_all_servers(self, statement: str) -> None:
        for host, port, _ in self._nodes:
            at = conninfo.make_conninfo(os.environ["CITUS_URL"], host=host, port=port)
            with psycopg.connect(at, autocommit=True) as node:
                node.execute(sql.SQL(statement).format(sql.Identifier(self._name)))
