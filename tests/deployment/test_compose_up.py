"""The commands of compose.yaml, in the order of its dependencies, as processes on PostgreSQL.

The test has no images, networks or file systems of containers. Directories replace the mounted
paths of a service, and other paths do not exist.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from tests.deployment.test_compose import COMPOSE
from tests.deployment.test_container import arguments
from tests.support import postgres
from tests.support.installation import ROOT
from tests.support.server import LiveServer
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="PostgreSQL has roles"
    ),
]

SERVICES: Final[dict[str, dict[str, Any]]] = COMPOSE["services"]
COMPLETED: Final = "service_completed_successfully"


class Project:
    """The containers as processes, and their volumes as directories."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.name = f"compose_{secrets.token_hex(4)}"
        self.roles = {"infra": f"{self.name}_service", "infra_owner": f"{self.name}_owner"}
        self.server = os.environ["DATABASE_URL"].rpartition("/")[0]
        self.front = LiveServer(scratch)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def paths(self, name: str) -> dict[str, str]:
        """Return the directory or file of each path that a service mounts."""
        service = SERVICES[name]
        found = {}
        for volume in service.get("volumes", []):
            source, target = volume.split(":")[:2]
            found[target] = str((ROOT if source[0] == "." else self.scratch) / source)
        for mount in service.get("tmpfs", []):
            target = mount.split(":")[0]
            found[target] = f"{self.scratch}/{name}{target}"
        for directory in found.values():
            if not Path(directory).is_file():
                Path(directory).mkdir(parents=True, exist_ok=True)
        return found

    def placed(self, name: str, text: str) -> str:
        """Return a service's text with the paths of this machine and the roles of this test."""
        paths = self.paths(name)
        any_path = "|".join(map(re.escape, paths))
        text = re.sub(rf"(?<![\w/])({any_path})(?=$|[/ ])", lambda found: paths[found[1]], text)
        return re.sub("(?<=grant_service_role )infra$", self.roles["infra"], text)

    def environment(self, name: str) -> dict[str, str]:
        given = SERVICES[name].get("environment", {})
        return {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            **{variable: self.placed(name, value) for variable, value in given.items()},
            "BIND": f"127.0.0.1:{self.front.port}",
        }

    def start(self, name: str) -> subprocess.Popen[bytes]:
        (default,) = arguments("CMD")
        command = SERVICES[name].get("command", json.loads(default))
        with (self.scratch / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [self.placed(name, word) for word in command],
                cwd=ROOT, env=self.environment(name), stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        return self.processes[name]

    def log(self, name: str) -> str:
        return (self.scratch / f"{name}.log").read_text()

    def complete(self, name: str) -> str:
        """Run a service until it exits; return its output."""
        assert self.start(name).wait(120) == 0, self.log(name)
        return self.log(name)

    def create_database(self) -> None:
        """Create the database like PostgreSQL's image, with the passwords in its files."""
        environment = self.environment("database")
        assert len(Path(environment["POSTGRES_PASSWORD_FILE"]).read_text()) == 64
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self.name}")
        owner, service = self.roles["infra_owner"], self.roles["infra"]
        names = ("-v", f"owner={owner}", "-v", f"service={service}")
        (script,) = [
            place
            for target, place in self.paths("database").items()
            if target.startswith("/docker-entrypoint-initdb.d/")
        ]
        psql = postgres.binaries(self.scratch) / "psql"
        subprocess.run(
            [psql, "-q", f"{self.server}/{self.name}", *names, "--file", script],
            env=environment, check=True,
        )  # fmt: skip

    def address_database(self, volume: str, role: str, password_file: str) -> None:
        """Replace the database's container in a URL by the server of this test."""
        file = self.scratch / volume / "DATABASE_URL"
        password = (self.scratch / "database-secrets" / password_file).read_text()
        assert re.fullmatch("[0-9a-f]{64}", password)
        assert file.read_text() == f"postgres://{role}:{password}@database:5432/infra"
        host = self.server.rpartition("@")[2]
        file.write_text(f"postgres://{self.roles[role]}:{password}@{host}/{self.name}")

    def password_of_operator_is(self, password: str) -> bool:
        """Check the password in the environment of the service."""
        code = (
            "from apikeys.models import User;"
            f"print(User.objects.get(username='operator').check_password({password!r}))"
        )
        command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", code]
        return subprocess.check_output(command, cwd=ROOT, env=self.environment("service")) == (
            b"True\n"
        )

    def is_healthy(self, name: str) -> bool:
        _shell, probe = SERVICES[name]["healthcheck"]["test"]
        line = self.placed(name, probe.replace("$$", "$"))
        return subprocess.run(["sh", "-c", line], check=False).returncode == 0

    def close(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")
            for role in self.roles.values():
                connection.execute(f"DROP ROLE IF EXISTS {role}")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with contextlib.closing(Project(tmp_path)) as made:
        yield made


def order() -> list[str]:
    """Return the services, each after its dependencies."""
    ordered: list[str] = []
    while len(ordered) < len(SERVICES):
        ready = [
            name
            for name, service in SERVICES.items()
            if name not in ordered and set(service.get("depends_on", {})) <= set(ordered)
        ]
        assert ready, "circular dependencies"
        ordered += ready
    return ordered


def test_up_starts_everything_and_prints_the_first_secrets(project: Project) -> None:
    ends = {
        name
        for service in SERVICES.values()
        for name, needed in service.get("depends_on", {}).items()
        if needed["condition"] == COMPLETED
    }
    assert ends == {"secrets", "migrate", "operator"}
    printed = {}
    for name in order():
        if name in ends:
            printed[name] = project.complete(name)
        elif name == "database":
            project.address_database("service-secrets", "infra", "SERVICE_PASSWORD")
            project.address_database("owner-secrets", "infra_owner", "OWNER_PASSWORD")
            project.create_database()
        elif name == "service":
            project.front.wait_until_ready(project.start(name))
        else:
            project.start(name)

    found = re.search(r"PASSWORD=(\S+)\n.+user operator, password (\S+)\n$", printed["operator"])
    assert found
    token, password = found.groups()
    assert project.front.request("GET", "/v1/whoami", token=token).status == 200
    assert project.password_of_operator_is(password)
    with_heartbeat = SERVICES.keys() - ends - {"database", "service"}
    wait_until(lambda: all(map(project.is_healthy, with_heartbeat)))

    again = project.complete("operator")
    assert again == "A user named operator already exists.\n"
    running = SERVICES.keys() - ends - {"database"}
    for name in running:
        os.kill(project.processes[name].pid, signal.SIGTERM)
    codes = {name: project.processes[name].wait(40) for name in running}
    assert codes == dict.fromkeys(running, 0), {name: project.log(name) for name in running}


def test_secrets_are_generated_once_and_settings_take_precedence(project: Project) -> None:
    def stored() -> dict[str, str]:
        files = [*project.scratch.glob("*-secrets/*")]
        assert {file.stat().st_mode & 0o777 for file in files} == {0o644}
        return {f"{file.parent.name}/{file.name}": file.read_text() for file in files}

    assert project.complete("secrets") == ""
    first = stored()
    assert len(set(first.values())) == len(first) == 7
    assert project.complete("secrets") == ""
    assert stored() == first

    given = {"STATE_ENCRYPTION_KEYS": "new,old", "OWNER_PASSWORD": "mine"}
    command = [project.placed("secrets", word) for word in SERVICES["secrets"]["command"]]
    subprocess.run(command, env={"PATH": os.environ["PATH"], **given}, check=True)
    changed = {
        "service-secrets/STATE_ENCRYPTION_KEYS": "new,old",
        "database-secrets/OWNER_PASSWORD": "mine",
        "owner-secrets/DATABASE_URL": "postgres://infra_owner:mine@database:5432/infra",
    }
    assert stored() == {**first, **changed}

    given = {"OWNER_PASSWORD": "a/b@c"}  # not for a URL
    refused = subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], **given},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert refused.stderr == "OWNER_PASSWORD in .env must consist of letters and digits\n"
    assert stored() == {**first, **changed}


def test_the_readme_starts_the_service_with_one_command() -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)

    assert block == "docker compose up --build\n"


def test_the_page_names_the_files_of_secrets() -> None:
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    (line,) = re.findall(r"^\$ docker compose exec service cat (\S+)", page, re.MULTILINE)
    mounted = [volume.split(":")[1] for volume in SERVICES["service"]["volumes"]]

    assert shlex.split(line) == [SERVICES["service"]["environment"]["STATE_ENCRYPTION_KEYS_FILE"]]
    assert str(Path(line).parent) in mounted
