"""deploy/secrets.sh, with the command of docs/how-to/install-on-kubernetes.md."""

from __future__ import annotations

import base64
import os
import secrets
import shlex
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from tests.deployment.chart import NAME
from tests.docs.walk import Shell, steps
from tests.support import postgres
from tests.support.installation import ROOT

PAGE = (ROOT / "docs" / "how-to" / "install-on-kubernetes.md").read_text()
(COMMAND,) = [step.command for step in steps(PAGE) if step.command.startswith("deploy/secrets.sh")]
PASSWORDS = {"OWNER_PASSWORD": "0a1b", "SERVICE_PASSWORD": "2c3d"}


def write(scratch: Path, *more: str, **passwords: str) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(COMMAND)
    return subprocess.run(
        [ROOT / program, *arguments, *more], cwd=scratch, check=False,
        env={"PATH": os.environ["PATH"], **PASSWORDS, **passwords}, capture_output=True, text=True,
    )  # fmt: skip


def test_secrets_are_written_once(tmp_path: Path) -> None:
    done = write(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    file = tmp_path / "secrets.yaml"
    assert file.stat().st_mode & 0o777 == 0o600
    text = file.read_text()
    namespace, service, owner = yaml.safe_load_all(text)

    # As kubectl prints them on the page.
    (created,) = [step.output for step in steps(PAGE) if "-f secrets.yaml" in step.command]
    documents: list[dict[str, Any]] = [namespace, service, owner]
    assert created == [f"{d['kind'].lower()}/{d['metadata']['name']} created" for d in documents]
    assert {d["metadata"].get("namespace", "infra") for d in documents} == {"infra"}
    values = service["stringData"]
    assert len(base64.b64decode(values["STATE_ENCRYPTION_KEYS"])) == 32
    assert len(values["SECRET_KEY"]) == 64
    address = "db.example.com:5432/infra"
    assert values["DATABASE_URL"] == f"postgres://infra:2c3d@{address}"
    assert owner["stringData"] == {"DATABASE_URL": f"postgres://infra_owner:0a1b@{address}"}
    assert service["metadata"]["name"] == NAME

    assert write(tmp_path).returncode != 0
    assert file.read_text() == text


def test_another_namespace(tmp_path: Path) -> None:
    assert write(tmp_path, "platform").returncode == 0

    namespace, *others = yaml.safe_load_all((tmp_path / "secrets.yaml").read_text())
    assert namespace["metadata"]["name"] == "platform"
    assert [secret["metadata"]["namespace"] for secret in others] == ["platform"] * 2


@pytest.mark.parametrize("password", ["", "it's", 'a"b', "a@b"])
def test_a_password_that_a_url_cannot_contain_is_refused(tmp_path: Path, password: str) -> None:
    refused = write(tmp_path, OWNER_PASSWORD=password)

    assert refused.returncode == 1
    assert "must consist of letters and digits" in refused.stderr
    assert not (tmp_path / "secrets.yaml").exists()


@pytest.mark.skipif(
    not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="PostgreSQL has roles"
)
def test_the_page_creates_the_database_and_the_roles(tmp_path: Path) -> None:
    """With other names, because all databases of a server share the roles."""
    name = f"chart_{secrets.token_hex(4)}"
    owner, service = f"{name}_owner", f"{name}_service"
    export, psql = (
        step.command for step in steps(PAGE) if step.command.startswith(("export", "psql"))
    )
    for documented, used in {
        "CREATE DATABASE infra": f"CREATE DATABASE {name}",
        "connect infra": f"connect {name}",
        "-f ": f"-v owner={owner} -v service={service} -f ",
    }.items():
        assert documented in psql
        psql = psql.replace(documented, used)
    path = f"{postgres.binaries(tmp_path)}:{os.environ['PATH']}"
    url = os.environ["DATABASE_URL"]
    shell = Shell(ROOT, {"PATH": path, "SUPERUSER_URL": url})
    try:
        assert shell.run(export) == (0, [])
        code, printed = shell.run(psql)
        assert code == 0, printed
        code, (secret,) = shell.run("echo $OWNER_PASSWORD")
        assert len(secret) == 64
        server = url.rpartition("@")[2].rpartition("/")[0]
        with psycopg.connect(f"postgres://{owner}:{secret}@{server}/{name}") as connection:
            connection.execute("CREATE TABLE a (id int)")
        with (
            psycopg.connect(f"postgres://{service}@{server}/{name}") as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute("SELECT FROM public.a")
    finally:
        shell.close()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            for role in (owner, service):
                connection.execute(f"DROP ROLE IF EXISTS {role}")
