"""docs/how-to/deploy.md, from its text: both roles, the settings files, and the units."""

from __future__ import annotations

import base64
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.deployment.units import HOW_TO, Instance, Machine
from tests.docs.conftest import manage_py, readers
from tests.docs.walk import Walk
from tests.e2e import object_store
from tests.support import postgres
from tests.support.installation import ROOT

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="PostgreSQL has roles"
    ),
]

PAGE = (HOW_TO / "deploy.md").read_text()
OLD_EVENT = (
    "INSERT INTO apikeys_auditevent SELECT '00000000-0000-7000-8000-000000000001',"
    " now() - interval '500 days', 'x', NULL, 'x', '', 'x', NULL, '', '{}'"
)
THROUGH_THE_PROXY = {"X-Forwarded-Proto": "https", "Host": "infra.example"}
#: Commands that would change the test machine.
OF_THE_MACHINE = (
    "useradd --system --home-dir /opt/infra-service infra",
    "git clone <this repository> /opt/infra-service-releases/1.0.0",
    "git -C /opt/infra-service-releases/1.0.0 checkout <tag or commit of 1.0.0>",
    "make PYTHON=/usr/bin/python3 .venv/extra-s3",
    "systemctl enable --now infra-archive.timer",
)


def between(start: str, end: str) -> str:
    return PAGE[PAGE.index(f"\n{start}\n") : PAGE.index(f"\n{end}\n")]


class Database:
    """A new name for a database and its roles, on the server of the tests."""

    def __init__(self) -> None:
        self.name = f"deploy_{secrets.token_hex(4)}"
        self.owner, self.service = f"{self.name}_owner", f"{self.name}_service"
        self.server = os.environ["DATABASE_URL"].rpartition("/")[0]

    def url(self, role: str, password: str) -> str:
        host = self.server.rpartition("@")[2]
        return f"postgres://{role}:{password}@{host}/{self.name}?connect_timeout=5&sslmode=prefer"

    @property
    def superuser_url(self) -> str:
        return f"{self.server}/{self.name}"

    def drop(self) -> None:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")
            for role in (self.owner, self.service):
                connection.execute(f"DROP ROLE IF EXISTS {role}")


@pytest.fixture
def database() -> Iterator[Database]:
    made = Database()
    yield made
    made.drop()


@pytest.fixture(scope="module")
def store() -> Iterator[int]:
    with object_store.running() as port:
        yield port


def test_deploy_page_commands_work(tmp_path: Path, database: Database, store: int) -> None:
    page = tmp_path / "deploy.md"
    page.write_text(
        between("## Secrets", "## With containers")
        + between("## Housekeeping", "## TLS and the proxy")
    )
    machine = Machine(tmp_path / "machine")
    instance = Instance(machine, "infra-service@8000")

    def migrate_and_start() -> str:
        unit = machine.path("/etc/systemd/system/infra-migrate.service")
        grant = "grant_service_role infra"
        assert unit.read_text().count(f"{grant}\n") == 1
        unit.write_text(unit.read_text().replace(grant, f"grant_service_role {database.service}"))
        machine.start("infra-migrate")
        instance.start()
        with psycopg.connect(database.superuser_url) as connection:
            connection.execute(OLD_EVENT)
        return ""

    def once(unit: str) -> Callable[[], str]:
        def start() -> str:
            machine.start(unit)
            return ""

        return start

    programs = postgres.binaries(tmp_path)
    environment = {
        **readers(tmp_path, {}),
        "PATH": f"{tmp_path}:{programs}:{os.environ['PATH']}",
        "SUPERUSER_URL": database.superuser_url,
        "CLIENT_SECRET": "of the provider",
        "DJANGO_SUPERUSER_PASSWORD": secrets.token_urlsafe(12),
    }
    # systemctl of the loop that restarts instances in turn; both are this instance.
    systemctl = tmp_path / "systemctl"
    systemctl.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/restarted\n')
    systemctl.chmod(0o755)
    words = {
        "ln -s infra-service-releases/1.0.0 /opt/infra-service && cd /opt/infra-service": (
            f"cd {ROOT}"
        ),
        "createdb infra": f"createdb --maintenance-db={os.environ['DATABASE_URL']} {database.name}",
        'psql "$SUPERUSER_URL"': (
            f'psql --quiet "$SUPERUSER_URL" -v owner={database.owner} -v service={database.service}'
        ),
        "OWNER_PASSWORD=… SERVICE_PASSWORD=…": "OWNER_PASSWORD=own SERVICE_PASSWORD=serve",
        "postgres://infra:…@127.0.0.1:5432/infra": database.url(database.service, "serve"),
        "postgres://infra_owner:…@127.0.0.1:5432/infra": database.url(database.owner, "own"),
        "s3://KEY:…@bucket?region_name=eu-west-1": (
            f"s3://key:secret@{object_store.BUCKET}?endpoint_url=http://127.0.0.1:{store}"
        ),
        "\nSECRET_KEY=…": f"\nSECRET_KEY={secrets.token_urlsafe(50)}",
        "STATE_ENCRYPTION_KEYS=…": (
            f"STATE_ENCRYPTION_KEYS={base64.b64encode(secrets.token_bytes(32)).decode()}"
        ),
        "http://127.0.0.1:$port/": f"{instance.url}/",
        "createsuperuser --username": "createsuperuser --noinput --username",
        "/etc/": f"{machine.path('/etc')}/",
        **manage_py(),
    }
    by_hand: dict[str, Callable[[], str]] = {command: lambda: "" for command in OF_THE_MACHINE}
    by_hand |= {
        "openssl rand -base64 48    # SECRET_KEY": lambda: "",
        "openssl rand -base64 32    # STATE_ENCRYPTION_KEYS": lambda: "",
        "systemctl enable --now infra-port@8000.socket infra-service@8000": migrate_and_start,
        "systemctl enable --now infra-housekeeping.timer": once("infra-housekeeping"),
        "systemctl start infra-archive": once("infra-archive"),
        "systemctl enable --now infra-index": once("infra-index"),
        "systemctl enable --now infra-webhooks": once("infra-webhooks"),
    }
    try:
        assert Walk(ROOT, environment, words, by_hand).through(page)

        answer = instance.request("GET", "/admin/login/", headers=THROUGH_THE_PROXY)
        assert answer.status == 200
        assert (tmp_path / "restarted").read_text().splitlines() == [
            "restart infra-service@8000",
            "restart infra-service@8001",
            "restart infra-index infra-webhooks",
        ]
        (archive_file,) = machine.path("/var/lib/infra-archive").iterdir()
        assert archive_file.name == "audit-00000001.jsonl.gz"
        reads_its_own_copy_of_the_secret(machine)
        assert instance.stop() == 0
    finally:
        instance.close()


def reads_its_own_copy_of_the_secret(machine: Machine) -> None:
    """``infra-migrate`` has no permissions on the file itself."""
    environment = machine.environment("infra-migrate")
    machine.path("/etc/credstore/infra-service.OIDC_CLIENT_SECRET").unlink()
    show = "from django.conf import settings; print(settings.OIDC_CLIENT_SECRET)"
    output = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", show],
        cwd=ROOT,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    assert output == "of the provider\n"
