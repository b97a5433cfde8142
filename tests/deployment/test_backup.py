"""The commands of docs/how-to/back-up-and-restore.md, while clients push, with both roles."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from tests.deployment.roles import FORBIDDEN, Roles
from tests.e2e.backend import Backend, document
from tests.e2e.database import contradictions, snapshot
from tests.e2e.traffic import Traffic, md5
from tests.support import postgres
from tests.support.installation import ROOT
from tests.support.server import LiveServer, live_server

pytestmark = [pytest.mark.both, pytest.mark.long]

PAGE = (ROOT / "docs" / "how-to" / "back-up-and-restore.md").read_text()


def blocks(heading: str) -> list[list[str]]:
    """Return the commands of each block of a section and its subsections."""
    section = PAGE.split(f"\n{heading}\n")[1].split("\n## ")[0]
    found = re.findall(r"^```console\n(.+?)^```", section, re.MULTILINE | re.DOTALL)
    typed = [[line for line in block.splitlines() if line.startswith("$ ")] for block in found]
    return [[line.removeprefix("$ ") for line in block] for block in typed]


def run(commands: list[str], place: Place) -> str:
    """Run commands as typed, and stop at the first that fails."""
    written = re.compile("|".join(map(re.escape, place.words)))
    script = written.sub(lambda found: place.words[found[0]], "\n".join(commands))
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=place.directory.parent,
        env=place.environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    ).stdout


class Place:
    """The destination of a restore: another directory, or another database on the same server."""

    heading = "## SQLite"

    def __init__(self, server: LiveServer, scratch: Path) -> None:
        self.directory = scratch / "restored"
        self.directory.mkdir()
        self.environment = {**server.environment, "RESTORED_DIR": str(self.directory)}
        self.words = {
            ".venv/bin/python manage.py": f"{sys.executable} {ROOT}/manage.py",
            ".venv/bin/python": sys.executable,
        }

    def server(self) -> LiveServer:
        """Return a server on the restored data, with the keys that were backed up separately."""
        kept = ("SECRET_KEY", "STATE_ENCRYPTION_KEYS")
        environment = {name: self.environment[name] for name in kept}
        if url := self.environment.get("RESTORED_URL"):
            environment["DATABASE_URL"] = url
        return LiveServer(self.directory, **environment)


class PostgresPlace(Place):
    """A new database with both roles; the page's names stand for those of a test."""

    heading = "## PostgreSQL"

    def __init__(self, roles: Roles, scratch: Path) -> None:
        super().__init__(roles.serving, scratch)
        self.roles, self.database = roles, f"restored_{roles.suffix}"
        owner, service = roles.migrating.environment, roles.serving.environment
        new = {
            name: url["DATABASE_URL"].rpartition("/")[0] + f"/{self.database}"
            for name, url in (("RESTORED_OWNER_URL", owner), ("RESTORED_URL", service))
        }
        file = scratch / "pg_service.conf"
        sections = {
            "infra": owner["DATABASE_URL"],
            "restored": new["RESTORED_OWNER_URL"],
            "server": os.environ["DATABASE_URL"],
        }
        file.write_text("".join(_section(name, url) for name, url in sections.items()))
        file.chmod(0o600)
        path = f"{postgres.binaries(scratch)}:{os.environ['PATH']}"
        self.environment |= {**new, "PATH": path, "PGSERVICEFILE": str(file)}
        # The roles exist already, so no password is needed.
        variables = f"--set=owner={roles.owner} --set=service={roles.service}"
        self.words |= {
            "DATABASE restored'": f"DATABASE {self.database}'",
            "dbname=restored'": f"dbname={self.database}'",
            "--file=docs": f"{variables} --file={ROOT}/docs",
            "grant_service_role infra": f"grant_service_role {roles.service}",
        }

    def drop(self) -> None:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")

    def check_privileges(self, subtests: pytest.Subtests) -> None:
        """Check that the owner owns everything, and that the service's role lacks further
        privileges.
        """
        admin = os.environ["DATABASE_URL"].rpartition("/")[0] + f"/{self.database}"
        with psycopg.connect(admin) as connection:
            owners = connection.execute(
                "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public' UNION"
                " SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = %s",
                [self.database],
            ).fetchall()
            assert owners == [(self.roles.owner,)]
            access = "SELECT has_database_privilege('public', %s, 'CONNECT')"
            assert connection.execute(access, [self.database]).fetchone() == (False,)
        for statement in FORBIDDEN:
            with (
                subtests.test(statement),
                psycopg.connect(self.environment["RESTORED_URL"]) as connection,
                pytest.raises(psycopg.errors.InsufficientPrivilege),
            ):
                connection.execute(statement)  # type: ignore[arg-type]  # not a literal


def _section(name: str, url: str) -> str:
    parameters = psycopg.conninfo.conninfo_to_dict(url)
    return "\n".join(
        [f"[{name}]", *(f"{key}={value}" for key, value in parameters.items()), "", ""]
    )


@dataclass
class Service:
    """A service with an idle state, and clients that push to other states."""

    server: LiveServer
    still: Backend
    traffic: Traffic
    # The pushes acknowledged to each client before the backup began.
    promised: dict[int, set[str]] = field(default_factory=dict)

    def back_up(self, commands: list[str], place: Place) -> None:
        """Run the backup while clients push."""
        self.traffic.start()
        try:
            self.traffic.wait_until_each_has(3)
            self.promised = {id(one): set(one.acknowledged) for one in self.traffic.ledgers}
            run(commands, place)
        finally:
            self.traffic.stop()
        assert self.traffic.unexpected == []
        # The service continued.
        assert self.traffic.acknowledged() > sum(map(len, self.promised.values()))


BODY = document(7, secret="kept")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[LiveServer, Place]]:
    """A running service, and a destination: with both roles where the database has roles."""
    if "DATABASE_URL" not in os.environ:
        with live_server() as server:
            yield server, Place(server, tmp_path)
        return
    with contextlib.closing(Roles(tmp_path)) as roles:
        roles.migrating.make_operator(
            ("migrate", "--verbosity", "0"), ("grant_service_role", roles.service)
        )
        roles.serving.start()
        restored = PostgresPlace(roles, tmp_path)
        try:
            yield roles.serving, restored
        finally:
            restored.drop()


def test_backup_during_pushes_and_restore(
    place: tuple[LiveServer, Place], subtests: pytest.Subtests
) -> None:
    server, destination = place
    token = server.token("state:read", "state:write", "state:admin")
    service = Service(server, Backend(server, token), Traffic(server, token))
    assert service.still.push(BODY).status == 200
    backup, restore = blocks(destination.heading)
    service.back_up(backup, destination)
    later = Backend(server, token)
    assert later.push(document(1)).status == 200
    output = run(restore, destination)
    checked = re.search(
        r"^(\d+) documents checked, 0 problems\nolder keys are needed by: nothing$",
        output,
        re.MULTILINE,
    )
    assert checked is not None, output
    with contextlib.closing(destination.server()) as restored:
        restored.start()
        compare(restored, service, int(checked[1]))
        assert restored.request("GET", later.path, token=token).status == 404
        restored.run_commands(("housekeeping",))
    if isinstance(destination, PostgresPlace):
        destination.check_privileges(subtests)


def compare(restored: LiveServer, service: Service, checked: int) -> None:
    """Find everything acknowledged before the backup, without contradictions."""
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
    # The restored service works: the next push succeeds.
    assert again.push(document(8)).status == 200


def test_backup_without_the_database_fails(tmp_path: Path) -> None:
    (command,), _ = blocks("## SQLite")
    command = command.replace(".venv/bin/python", sys.executable)

    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env={}, check=False, capture_output=True, text=True
    )

    assert done.returncode == 1
    assert "unable to open database file" in done.stderr
    assert list(tmp_path.iterdir()) == []


#: Compose, with this machine as every container; the caller stops and starts the service.
DOCKER = """#!/bin/bash
set -euo pipefail
while [ "$1" != exec ]; do case $1 in stop|up) exit;; esac; shift; done
shift; [ "$1" != -T ] || shift
container=$1; shift
[ $container = database ] || cd "$CONTAINER"
exec "$@"
"""


@pytest.mark.skipif("DATABASE_URL" not in os.environ, reason="compose.yaml runs PostgreSQL")
def test_backup_and_restore_with_compose(tmp_path: Path) -> None:
    section = PAGE.split("\n### Docker Compose\n")[1].split("\n## ")[0]
    backup, restore = re.findall(r"^```sh\n(.+?)^```", section, re.MULTILINE | re.DOTALL)
    restore, verify = restore.split("docker compose up --detach\n")
    with contextlib.closing(Roles(tmp_path)) as roles:
        serving, migrate = roles.serving, ("migrate", "--verbosity", "0")
        grant = ("grant_service_role", roles.service)
        roles.migrating.make_operator(migrate, grant)
        run = _compose(roles, tmp_path)
        serving.start()
        still = Backend(serving, serving.token("state:read", "state:write"))
        assert still.push(BODY).status == 200
        run(backup)
        later = Backend(serving, still.token)
        assert later.push(BODY).status == 200
        serving.stop()

        run(restore)
        roles.migrating.manage_all(migrate, grant)  # the container "migrate"
        serving.start()

        assert "1 document checked, 0 problems" in run(verify)
        assert still.get().body == BODY
        assert later.get().status == 404
        keys = (tmp_path / "keys.env").read_text().split()
        assert keys == [f"{name}={serving.environment[name]}" for name in KEYS]
        run(f"docker compose exec -T database dropdb --username=postgres before{roles.suffix}")


KEYS = ("SECRET_KEY", "STATE_ENCRYPTION_KEYS")


def _compose(roles: Roles, place: Path) -> Callable[[str], str]:
    """Return a function that runs commands as typed, with the names of this test."""
    secrets, container = place / "secrets", place / "container"
    for directory in (secrets, container, place / "bin"):
        directory.mkdir()
    for name in KEYS:
        (secrets / name).write_text(roles.serving.environment[name] + "\n")
    docker = place / "bin" / "docker"
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    parameters = psycopg.conninfo.conninfo_to_dict(os.environ["DATABASE_URL"])
    names = {"host": "PGHOST", "port": "PGPORT", "password": "PGPASSWORD"}
    words = {
        "--username=postgres": f"--username={parameters['user']}",
        "custom infra": f"custom roles_{roles.suffix}",
        "DATABASE infra": f"DATABASE roles_{roles.suffix}",
        "TO before": f"TO before{roles.suffix}",
        "--dbname=infra": f"--dbname=roles_{roles.suffix}",
        "infra_owner": roles.owner,
        "--file=/docker-entrypoint-initdb.d": (
            f"--set=owner={roles.owner} --set=service={roles.service} --file={ROOT}/docs/how-to"
        ),
        "/secrets/service": str(secrets),
        "python manage.py": f"{sys.executable} {ROOT}/manage.py",
    }
    written = re.compile("|".join(map(re.escape, words)))
    environment = {
        **roles.serving.environment,
        **{names[key]: str(value) for key, value in parameters.items() if key in names},
        "PATH": f"{place}/bin:{postgres.binaries(place)}:{os.environ['PATH']}",
        "CONTAINER": str(container),
    }

    def run(commands: str) -> str:
        script = written.sub(lambda found: words[found[0]], commands)
        command = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(
            command, cwd=place, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout

    return run


def test_backups_are_the_owners_alone() -> None:
    for heading in ("## PostgreSQL", "## SQLite"):
        backup, restore = blocks(heading)
        assert len(backup) == 1
        assert backup[0].startswith("(umask 077; ")
        assert "verify_states" in restore[-1]
