"""The owner's role and the service's, as docs/how-to makes them, on a real PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError

from tests.deployment.roles import FORBIDDEN, Roles
from tests.e2e.backend import Backend, document
from tests.support.installation import ROOT

pytestmark = pytest.mark.skipif(
    not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="PostgreSQL has roles"
)


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Roles]:
    roles = Roles(tmp_path_factory.mktemp("roles"))
    with contextlib.closing(roles):
        roles.migrating.migrate()
        roles.migrating.run_commands(("setup_groups",), ("grant_service_role", roles.service))
        yield roles


def test_the_service_does_its_work(roles: Roles, tmp_path: Path) -> None:
    """Readiness, tokens, pushes, locks, lists, log-ins, and the cleanup commands."""
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


def test_service_role_cannot_change_the_audit_log(roles: Roles, subtests: pytest.Subtests) -> None:
    for statement in FORBIDDEN:
        with (
            subtests.test(statement),
            psycopg.connect(roles.serving.environment["DATABASE_URL"]) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute(statement)  # type: ignore[arg-type]  # not a literal


def test_events_leave_by_the_owner_alone(roles: Roles, tmp_path: Path) -> None:
    # Demo states have a history, so they precede the commands that archive events.
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

    refused = f"the role {roles.service} cannot archive audit events"
    with pytest.raises(CommandError, match=refused):
        roles.serving.run_commands(command)
    (output,) = roles.migrating.run_commands(command)
    assert output.startswith('{"archives": 1')


def test_the_services_role_may_not_set_an_archive(
    roles: Roles, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """Even before any event is old enough, so that the error does not appear after 400 days."""
    for server, may in ((roles.migrating, True), (roles.serving, False)):
        environment = {**server.environment, "AUDIT_ARCHIVE_DIR": str(tmp_path)}
        for command, refusal in (
            (("check", "--database", "default"), "(infra_service.E008)"),
            (
                ("housekeeping", "--only", "events"),
                f"the role {roles.service} cannot archive audit events",
            ),
        ):
            with subtests.test(command, may=may):
                done = subprocess.run(
                    [sys.executable, "manage.py", *command],
                    cwd=ROOT,
                    env=environment,
                    check=False,
                    capture_output=True,
                    text=True,
                )
                assert (done.returncode == 0) is may, done.stderr
                assert (refusal in done.stdout + done.stderr) is not may


@pytest.mark.parametrize(
    ("change", "back", "message"),
    [
        ("ALTER ROLE {r} SUPERUSER", "ALTER ROLE {r} NOSUPERUSER", "has more privileges"),
        ("GRANT {o} TO {r}", "REVOKE {o} FROM {r}", "is a member"),
        (
            "GRANT CREATE ON SCHEMA public TO PUBLIC",
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
            "may create",
        ),
        (
            "ALTER ROLE {o} SET search_path = nowhere",
            "ALTER ROLE {o} RESET search_path",
            "connect as the owner of the tables",
        ),
    ],
)  # fmt: skip
def test_a_role_that_holds_more_is_refused(
    change: str, back: str, message: str, roles: Roles
) -> None:
    def execute(statement: str) -> None:
        with psycopg.connect(roles.admin_url, autocommit=True) as connection:
            named: Any = statement.format(r=roles.service, o=roles.owner)
            connection.execute(named)

    execute(change)
    try:
        with pytest.raises(CommandError, match=message):
            grant(roles, roles.service)
    finally:
        execute(back)


@pytest.mark.parametrize(
    ("role", "message"), [("nobody_there", "does not exist"), ("owner", "may change the audit log")]
)
def test_invalid_service_role_is_rejected(role: str, message: str, roles: Roles) -> None:
    with pytest.raises(CommandError, match=message):
        grant(roles, roles.owner if role == "owner" else role)
    # The owner lost nothing: the change is atomic.
    grant(roles, roles.service)


def grant(roles: Roles, role: str) -> None:
    roles.migrating.run_commands(("grant_service_role", role))
