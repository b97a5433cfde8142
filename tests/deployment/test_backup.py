"""What docs/how-to/deploy.md says of backup and restore: its own commands, while others push."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from tests import postgres
from tests.e2e.backend import Backend, document
from tests.e2e.database import contradictions, snapshot
from tests.e2e.traffic import Traffic, md5
from tests.installation import ROOT
from tests.server import LiveServer, live_server

pytestmark = [pytest.mark.both, pytest.mark.long]

PAGE = (ROOT / "docs" / "how-to" / "deploy.md").read_text()


def blocks(heading: str) -> list[list[str]]:
    """Return the commands of each block of a section."""
    section = PAGE.split(f"\n{heading}\n")[1].split("\n##")[0]
    found = re.findall(r"^```console\n(.+?)^```", section, re.MULTILINE | re.DOTALL)
    typed = [[line for line in block.splitlines() if line.startswith("$ ")] for block in found]
    return [[line.removeprefix("$ ") for line in block] for block in typed]


def run(commands: list[str], directory: Path, environment: dict[str, str]) -> str:
    """Run commands as a person would type them, and stop at the first that fails."""
    script = "\n".join(commands).replace(".venv/bin/python manage.py", "{0} {1}/manage.py")
    script = script.replace(".venv/bin/python", "{0}").replace("{0}", sys.executable)
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script.replace("{1}", str(ROOT))],
        cwd=directory,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    ).stdout


def _section(name: str, url: str) -> str:
    parameters = psycopg.conninfo.conninfo_to_dict(url)
    return "\n".join(
        [f"[{name}]", *(f"{key}={value}" for key, value in parameters.items()), "", ""]
    )


class Place:
    """Where it is restored to: another directory, or another database on the same server."""

    def __init__(self, server: LiveServer, scratch: Path) -> None:
        self.directory = scratch / "restored"
        self.directory.mkdir()
        self.is_postgres = "DATABASE_URL" in server.environment
        self.commands = blocks("### PostgreSQL" if self.is_postgres else "### SQLite")
        self.environment = {**server.environment, "RESTORED_DIR": str(self.directory)}
        if self.is_postgres:
            url = server.environment["DATABASE_URL"]
            programs = postgres.binaries(scratch)
            self.environment |= {
                "PATH": f"{programs}:{os.environ['PATH']}",
                "RESTORED_URL": f"{url.rpartition('/')[0]}/restored",
                "PGSERVICEFILE": str(scratch / "pg_service.conf"),
            }
            sections = {
                "infra": url,
                "server": os.environ["DATABASE_URL"],
                "restored": self.environment["RESTORED_URL"],
            }
            text = "".join(_section(name, url) for name, url in sections.items())
            (scratch / "pg_service.conf").write_text(text)

    def server(self) -> LiveServer:
        """Return a server on what was restored, with the keys that were kept apart."""
        kept = ("SECRET_KEY", "STATE_ENCRYPTION_KEYS")
        environment = {name: self.environment[name] for name in kept}
        if self.is_postgres:
            environment["DATABASE_URL"] = self.environment["RESTORED_URL"]
        return LiveServer(self.directory, **environment)

    def drop(self) -> None:
        if self.is_postgres:
            with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
                connection.execute("DROP DATABASE IF EXISTS restored WITH (FORCE)")


@dataclass
class Service:
    """A service with a state that nobody touches, and clients that push to others."""

    server: LiveServer
    still: Backend
    traffic: Traffic
    # What each client was promised before the backup began.
    promised: dict[int, set[str]] = field(default_factory=dict)

    def back_up(self, commands: list[str], place: Place) -> None:
        """Run the backup in the midst of it."""
        self.traffic.start()
        try:
            self.traffic.wait_until_each_has(3)
            self.promised = {id(one): set(one.acknowledged) for one in self.traffic.ledgers}
            run(commands, place.directory.parent, place.environment)
        finally:
            self.traffic.stop()
        assert self.traffic.unexpected == []
        assert self.traffic.acknowledged() > sum(map(len, self.promised.values()))  # it went on


BODY = document(7, secret="kept")


def test_backup_while_others_push_and_restore(tmp_path: Path) -> None:
    with live_server() as server:
        place = Place(server, tmp_path)
        token = server.token("state:read", "state:write", "state:admin")
        service = Service(server, Backend(server, token), Traffic(server, token))
        assert service.still.push(BODY).status == 200
        backup, restore = place.commands
        service.back_up(backup, place)
        later = Backend(server, token)
        assert later.push(document(1)).status == 200
        try:
            told = run(restore, tmp_path, place.environment)
            checked = re.fullmatch(
                r"(\d+) documents checked, 0 problems\nolder keys are needed by: nothing\n", told
            )
            assert checked is not None, told
            with contextlib.closing(place.server()) as restored:
                restored.start()
                compare(restored, service, int(checked[1]))
                assert restored.request("GET", later.path, token=token).status == 404
        finally:
            place.drop()


def compare(restored: LiveServer, service: Service, checked: int) -> None:
    """Find all that was acknowledged before the backup, and no contradiction."""
    assert contradictions(restored) == []
    found = snapshot(restored)
    assert sum(map(len, found.versions.values())) == checked
    for ledger in service.traffic.ledgers:
        backend = ledger.backend
        stored = found.versions_of(backend.component_id, backend.environment_id)
        assert service.promised[id(ledger)] <= {version["md5"] for version in stored}
        answer = restored.request("GET", backend.path, token=backend.token)
        assert md5(answer.body) == stored[-1]["md5"]
    again = service.still.with_token(service.still.token)
    again.server = restored
    assert again.get().body == BODY
    # It is a service again: the next push follows.
    assert again.push(document(8)).status == 200


def test_backups_are_the_owners_alone() -> None:
    for heading in ("### PostgreSQL", "### SQLite"):
        backup, restore = blocks(heading)
        assert len(backup) == 1
        assert backup[0].startswith("(umask 077; ")
        assert "verify_states" in restore[-1]
