"""A PostgreSQL cluster with Patroni: two hosts, etcd, and haproxy, which finds the primary."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.support.postgres import binaries
from tools.chaos.network import ADDRESSES
from tools.chaos.programs import UNPRIVILEGED, Program, read_tail, run, running, wait_for_port

_ETCD = f"http://{ADDRESSES['lab']}:2379"
_REST, _PORT, _HAPROXY = 8008, 5432, 6432

_HAPROXY_CFG = """
global
    maxconn 2000
defaults
    mode tcp
    timeout connect 2s
    timeout client 30m
    timeout server 30m
    timeout check 2s
listen primary
    bind 127.0.0.1:{port}
    option httpchk OPTIONS /primary
    http-check expect status 200
    default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
{servers}
"""


class Cluster:
    """Patroni on the hosts ``a`` and ``b``. ``is_synchronous`` enables its synchronous mode."""

    def __init__(self, directory: Path, *, is_synchronous: bool) -> None:
        self.directory, self.is_synchronous = directory, is_synchronous
        etcd = directory / "etcd"
        self.etcd = Program(
            "etcd",
            "--enable-v2=true",
            f"--data-dir={etcd}",
            f"--listen-client-urls={_ETCD}",
            f"--advertise-client-urls={_ETCD}",
            log=directory / "etcd.log",
        )
        self.members = {host: self._member(host) for host in ("a", "b")}
        configuration = directory / "haproxy.cfg"
        servers = "\n".join(
            f"    server {host} {ADDRESSES[host]}:{_PORT} check port {_REST}" for host in "ab"
        )
        configuration.write_text(_HAPROXY_CFG.format(port=_HAPROXY, servers=servers))
        self.haproxy = Program("haproxy", "-f", configuration, log=directory / "haproxy.log")
        self.url = f"postgres://postgres@127.0.0.1:{_HAPROXY}/postgres"

    def _member(self, host: str) -> Program:
        home = self.directory / f"patroni-{host}"
        home.mkdir()
        os.chown(home, 65534, 65534)
        configuration = home / "patroni.yml"
        configuration.write_text(json.dumps(self._settings(host, home)))
        words = (*UNPRIVILEGED, "/usr/bin/python3", "/usr/bin/patroni", configuration)
        return Program(*words, log=home / "log", host=host, HOME=str(home), PYTHONPATH="")

    def _settings(self, host: str, home: Path) -> dict[str, object]:
        address = ADDRESSES[host]
        dynamic = {
            "ttl": 20,
            "loop_wait": 2,
            "retry_timeout": 5,
            "maximum_lag_on_failover": 1048576,
            "synchronous_mode": self.is_synchronous,
            "postgresql": {
                "use_pg_rewind": True,
                "parameters": {"max_connections": 200, "shared_buffers": "64MB"},
            },
        }
        return {
            "scope": "chaos",
            "name": host,
            "restapi": {"listen": f"{address}:{_REST}", "connect_address": f"{address}:{_REST}"},
            "etcd3": {"hosts": f"{ADDRESSES['lab']}:2379"},
            "bootstrap": {"dcs": dynamic, "initdb": [{"encoding": "UTF8"}, {"auth": "trust"}]},
            "postgresql": {
                "listen": f"{address}:{_PORT}",
                "connect_address": f"{address}:{_PORT}",
                "data_dir": str(home / "data"),
                "bin_dir": str(binaries(self.directory)),
                "pgpass": str(home / "pgpass"),
                "authentication": {
                    "superuser": {"username": "postgres"},
                    "replication": {"username": "postgres"},
                },
                "parameters": {"unix_socket_directories": str(home)},
                "pg_hba": ["host all all all trust", "host replication all all trust"],
            },
        }

    def primary(self) -> str:
        """Return the host that reports that it is the primary, or ""."""
        for host in self.members:
            with contextlib.suppress(OSError, urllib.error.URLError):
                url = f"http://{ADDRESSES[host]}:{_REST}/primary"
                if urllib.request.urlopen(url, timeout=2).status == 200:
                    return host
        return ""

    def wait_for_primary(self, other_than: str = "", seconds: float = 90) -> str:
        """Wait until a host, other than ``other_than``, is the primary, and return the host."""
        deadline = time.monotonic() + seconds
        while (host := self.primary()) in ("", other_than):
            logs = {name: read_tail(member.log) for name, member in self.members.items()}
            assert time.monotonic() < deadline, f"no primary: {logs}"
            time.sleep(0.1)
        return host

    def wait_for_replica(self, host: str, seconds: float = 90) -> None:
        """Wait until a host replicates, synchronously in synchronous mode."""
        path = "synchronous" if self.is_synchronous else "replica"
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(OSError, urllib.error.URLError):
                url = f"http://{ADDRESSES[host]}:{_REST}/{path}"
                if urllib.request.urlopen(url, timeout=2).status == 200:
                    return
            assert time.monotonic() < deadline, read_tail(self.members[host].log)
            time.sleep(0.3)

    def switch_over(self) -> None:
        """Exchange the roles of the hosts with a planned switchover."""
        home = self.directory / f"patroni-{next(iter(self.members))}"
        run(["/usr/bin/patronictl", "-c", home / "patroni.yml", "switchover", "--force"])

    def kill_postgres(self, host: str) -> None:
        """Kill the PostgreSQL server of a host, with its process group."""
        pid_file = self.directory / f"patroni-{host}" / "data" / "postmaster.pid"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(pid_file.read_text().split()[0]), signal.SIGKILL)

    @contextlib.contextmanager
    def up(self) -> Iterator[None]:
        """Run the cluster during the block."""
        with running(self.etcd):
            wait_for_port(ADDRESSES["lab"], 2379)
            with contextlib.ExitStack() as stack:
                for host, member in self.members.items():
                    stack.callback(member.stop)
                    member.start()
                    if host == "a":
                        self.wait_for_primary()
                self.wait_for_replica("b")
                stack.callback(self.haproxy.stop)
                self.haproxy.start()
                wait_for_port("127.0.0.1", _HAPROXY)
                yield
