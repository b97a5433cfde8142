"""The owner's role and the service's, as docs/how-to makes them, on a real PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError

from tests import postgres
from tests.e2e.backend import Backend, document
from tests.installation import ROOT
from tests.server import LiveServer

pytestmark = pytest.mark.skipif(
    not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="PostgreSQL has roles"
)


FORBIDDEN = [
    "UPDATE apikeys_auditevent SET actor_name = 'bob'",
    "DELETE FROM apikeys_auditevent",
    "TRUNCATE apikeys_auditevent",
    "ALTER TABLE apikeys_auditevent DISABLE TRIGGER ALL",
    "DROP TRIGGER auditevent_append_only ON apikeys_auditevent",
    "DROP TABLE apikeys_auditevent",
    (
        "CREATE TRIGGER mine BEFORE INSERT ON apikeys_auditevent"
        " FOR EACH ROW EXECUTE FUNCTION apikeys_auditevent_refuse()"
    ),
    (
        "CREATE OR REPLACE FUNCTION apikeys_auditevent_refuse() RETURNS trigger"
        " LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'"
    ),
    (
        "INSERT INTO apikeys_auditarchive"
        " SELECT 1, '', 1, gen_random_uuid(), gen_random_uuid(), now()"
    ),
    "SET session_replication_role = replica",
    "CREATE TABLE mine (id int)",
    "CREATE TEMP TABLE apikeys_auditarchive (first_id uuid, last_id uuid)",
    "INSERT INTO django_migrations (app, name, applied) VALUES ('x', 'x', now())",
    "SET ROLE postgres",
]


class Roles:
    """A database with both roles, migrated by the one and served by the other."""

    def __init__(self, scratch: Path) -> None:
        self.suffix = secrets.token_hex(4)
        self.owner, self.service = f"owner_{self.suffix}", f"service_{self.suffix}"
        server, _, _ = os.environ["DATABASE_URL"].rpartition("/")
        self.host = server.rpartition("@")[2]
        self.admin_url = f"{server}/roles_{self.suffix}"
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE roles_{self.suffix}")
        names = ("-v", f"owner={self.owner}", "-v", f"service={self.service}")
        file = ROOT / "docs" / "how-to" / "create-roles.sql"
        subprocess.run(
            [postgres.binaries(scratch) / "psql", "-q", self.admin_url, *names, "--file", file],
            check=True,
            env={**os.environ, "OWNER_PASSWORD": "it's", "SERVICE_PASSWORD": "s p"},
        )
        (scratch / "owner").mkdir()
        (scratch / "service").mkdir()
        self.migrating = LiveServer(scratch / "owner", DATABASE_URL=self.url(self.owner, "it's"))
        keys = ("SECRET_KEY", "STATE_ENCRYPTION_KEYS")
        same = {name: self.migrating.environment[name] for name in keys}
        url = self.url(self.service, "s%20p")
        self.serving = LiveServer(scratch / "service", DATABASE_URL=url, **same)

    def url(self, role: str, password: str) -> str:
        return f"postgres://{role}:{password}@{self.host}/roles_{self.suffix}"

    def close(self) -> None:
        self.serving.close()
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(f"DROP DATABASE roles_{self.suffix} WITH (FORCE)")
            for role in (self.owner, self.service):
                connection.execute(f"DROP ROLE {role}")


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Roles]:
    roles = Roles(tmp_path_factory.mktemp("roles"))
    with contextlib.closing(roles):
        roles.migrating.migrate()
        roles.migrating.run_commands(("setup_groups",), ("grant_service_role", roles.service))
        yield roles


def test_the_service_does_its_work(roles: Roles, tmp_path: Path) -> None:
    """Readiness, tokens, pushes, locks, lists, log-ins, and the commands that clear up."""
    server = roles.serving
    server.start()
    scopes = "state:read,state:write,state:admin,audit:read,cluster:write,cluster:read"
    token = server.token(scopes)
    backend = Backend(server, token)
    assert backend.push(document(1)).status == 200
    assert backend.get().body == document(1)
    assert backend.lock("11111111-1111-4111-8111-111111111111").status == 200
    assert backend.unlock("11111111-1111-4111-8111-111111111111").status == 200
    for path in ("/readyz", "/api/v1/states", "/api/v1/audit-events", "/api/v1/clusters"):
        assert server.request("GET", path, token=token).status == 200, path
    server.run_commands(
        ("prune_states",), ("rotate_state_keys",), ("verify_states",), ("clearsessions",)
    )
    server.stop()


def test_it_changes_nothing_of_the_trail(roles: Roles, subtests: pytest.Subtests) -> None:
    for statement in FORBIDDEN:
        with (
            subtests.test(statement),
            psycopg.connect(roles.serving.environment["DATABASE_URL"]) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute(statement)  # type: ignore[arg-type]  # not a literal


def test_events_leave_by_the_owner_alone(roles: Roles, tmp_path: Path) -> None:
    # Demo states have a past, so they have to come before what leaves for an archive.
    roles.serving.run_commands(
        ("seed_demo", "--states", "4", "--clusters", "1", "--workloads", "5")
    )
    with psycopg.connect(roles.admin_url) as connection:
        connection.execute(
            "INSERT INTO apikeys_auditevent"
            " SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, '2020-01-01',"
            " 'x', NULL, 'x', '', 'x', NULL, '', '{}' FROM generate_series(1, 5) AS n"
        )
    command = ("archive_audit_events", "--before", "2021-01-01", "--to", str(tmp_path), "--json")

    with pytest.raises(CommandError, match="permission denied"):
        roles.serving.run_commands(command)
    (told,) = roles.migrating.run_commands(command)
    assert told.startswith('{"archives": 1')


@pytest.mark.parametrize(
    ("change", "back", "said"),
    [
        ("ALTER ROLE {r} SUPERUSER", "ALTER ROLE {r} NOSUPERUSER", "may do more"),
        ("GRANT {o} TO {r}", "REVOKE {o} FROM {r}", "is a member"),
        (
            "GRANT CREATE ON SCHEMA public TO PUBLIC",
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
            "may create",
        ),
    ],
)  # fmt: skip
def test_a_role_that_holds_more_is_refused(change: str, back: str, said: str, roles: Roles) -> None:
    def execute(statement: str) -> None:
        with psycopg.connect(roles.admin_url, autocommit=True) as connection:
            named: Any = statement.format(r=roles.service, o=roles.owner)
            connection.execute(named)

    execute(change)
    try:
        with pytest.raises(CommandError, match=said):
            grant(roles, roles.service)
    finally:
        execute(back)


@pytest.mark.parametrize(
    ("role", "said"), [("nobody_there", "does not exist"), ("owner", "may change the trail")]
)
def test_what_is_no_role_of_a_service(role: str, said: str, roles: Roles) -> None:
    with pytest.raises(CommandError, match=said):
        grant(roles, roles.owner if role == "owner" else role)
    # Nothing was taken from the owner: it was all or nothing.
    grant(roles, roles.service)


def grant(roles: Roles, role: str) -> None:
    roles.migrating.run_commands(("grant_service_role", role))
