"""Run two instances behind nginx or haproxy, with the configuration files in ``deploy/``."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.deployment.proxies import haproxy_file, nginx_file
from tests.support.postgres import free_port
from tests.support.server import Answer, LiveServer
from tools.chaos.network import ADDRESSES, inside
from tools.chaos.programs import Program, wait_for_port

_NGINX = """
daemon off; pid {directory}/nginx.pid; error_log {directory}/nginx.log warn; worker_processes 1;
events {{ worker_connections 8192; }}
http {{
    access_log off; client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/f; uwsgi_temp_path {directory}/u; scgi_temp_path {directory}/s;
    include {directory}/site.conf;
}}
"""


class Front(LiveServer):
    """The service as clients see it: the port of the proxy, and all instances behind it."""

    def __init__(self, directory: Path, hosts: Sequence[str], **environment: str) -> None:
        super().__init__(directory, **environment)
        self.instances: list[LiveServer] = []
        self._read: dict[int, int] = {}
        for number, host in enumerate(hosts, 1):
            home = directory / f"instance-{number}"
            home.mkdir()
            shared = {**self.environment, "VAR_DIR": str(home)}
            instance = LiveServer(home, **shared)
            instance.environment.pop("PGCONNECT_TIMEOUT", None)  # the service sets its own timeout
            if host != "lab":
                instance.address, instance.launcher = ADDRESSES[host], inside(host)
                instance.environment["ALLOWED_HOSTS"] = f"127.0.0.1,{instance.address}"
            instance.environment["BIND"] = f"{instance.address}:{instance.port}"
            self.instances.append(instance)

    def exceptions_in_logs(self) -> list[str]:
        """Return the last line and the number of each kind of logged exception.

        Each logged exception is a bug. A later call returns only new exceptions.
        """
        found: Counter[str] = Counter()
        for instance in self.instances:
            with instance.log.open(errors="replace") as log:
                log.seek(self._read.get(instance.port, 0))
                for line in iter(log.readline, ""):
                    if '"level": "error"' in line and line.startswith("{"):
                        event = json.loads(line)
                        text = event.get("exception", "").strip().splitlines()
                        found[f"{event['event']}: {text[-1] if text else ''}"] += 1
                self._read[instance.port] = log.tell()
        return [f"{n} times {text}" for text, n in found.items()]

    def answers_in_logs(self) -> Counter[tuple[str, int, str]]:
        """Return the number of responses with 500 and 503 by path, status and reason."""
        found: Counter[tuple[str, int, str]] = Counter()
        for instance in self.instances:
            for line in instance.log.read_text(errors="replace").splitlines():
                if not re.search(r'"status": ?50[03]\b', line):
                    continue
                with contextlib.suppress(ValueError):
                    event = json.loads(line)
                    reason = event.get("reason") or event.get("error_reason") or ""
                    found[str(event.get("path", "")), event["status"], reason] += 1
        return found

    def is_alive(self) -> bool:
        """Return whether each instance responds to the liveness probe within a second."""
        for instance in self.instances:
            try:
                if instance.request("GET", "/healthz", timeout=1).status != 200:
                    return False
            except (OSError, http.client.HTTPException):
                return False
        return True


@contextlib.contextmanager
def serving(
    directory: Path,
    *,
    proxy: str = "nginx",
    hosts: Sequence[str] = ("lab", "lab"),
    **environment: str,
) -> Iterator[Front]:
    """Run two instances on these hosts behind a proxy during the block."""
    front = Front(directory, hosts, **environment)
    with contextlib.ExitStack() as stack:
        front.migrate()
        for instance in front.instances:
            instance.environment["DJANGO_SUPERUSER_PASSWORD"] = "unused"
            stack.callback(instance.close)
            instance.start()
        stack.enter_context(_behind(front, proxy))
        yield front


@contextlib.contextmanager
def serving_alone(directory: Path, var: Path, **environment: str) -> Iterator[Front]:
    """Run one instance, with SQLite in the directory ``var``, during the block."""
    front = Front(directory, ("lab", "lab"), **environment, VAR_DIR=str(var))
    instance = LiveServer(directory / "instance-1", **front.environment)
    instance.environment["BIND"] = f"127.0.0.1:{instance.port}"
    front.instances, front.port = [instance], instance.port
    (directory / "db.sqlite3").symlink_to(var / "db.sqlite3")
    front.migrate()
    with contextlib.closing(instance):
        instance.start()
        yield front


@contextlib.contextmanager
def _behind(front: Front, proxy: str) -> Iterator[None]:
    front.port = free_port()
    listen = f"127.0.0.1:{front.port}"
    servers = [f"{one.address}:{one.port}" for one in front.instances]
    configuration = front.directory / f"{proxy}.conf"
    if proxy == "nginx":
        (front.directory / "site.conf").write_text(nginx_file(listen, servers))
        configuration.write_text(_NGINX.format(directory=front.directory))
        words = ["nginx", "-c", str(configuration)]
    else:
        configuration.write_text(haproxy_file(listen, servers))
        words = ["haproxy", "-f", str(configuration)]
    program = Program(*words, log=front.directory / f"{proxy}.log")
    program.start()
    try:
        wait_for_port("127.0.0.1", front.port)
        yield
    finally:
        program.stop()


def reason_of(answer: Answer) -> str:
    """Return the reason in a response, or a note if the response is not from the service."""
    try:
        return answer.reason
    except (ValueError, KeyError, TypeError):
        return "(not from the service)"
