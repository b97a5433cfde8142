"""compose.yaml, as far as it can be tested without a container engine."""

from __future__ import annotations

import base64
import os
import re
import secrets
import shutil
import subprocess
import sys
from typing import Any

import pytest
import yaml

from infra_service import gunicorn
from tests.support.installation import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
#: The services that log in as the owner of the tables.
AS_OWNER = {"migrate", "archive"}
OURS = [name for name, service in COMPOSE["services"].items() if "build" in service]


@pytest.mark.parametrize("name", OURS)
def test_compose_gives_it_no_more_than_it_needs(name: str) -> None:
    service = COMPOSE["services"][name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert int(service["stop_grace_period"].removesuffix("s")) > gunicorn.graceful_timeout
    assert [mount.split(":")[0] for mount in service["tmpfs"]] == ["/tmp", "/run/infra-service"]
    assert "privileged" not in service
    mounts = ["service-secrets:/secrets/service:ro"]
    if name in AS_OWNER:
        mounts.append("owner-secrets:/secrets/owner:ro")
    if name == "archive":
        mounts.append("archives:/var/lib/infra-archive")
    assert service["volumes"] == mounts


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_compose_limits_memory_and_processes(name: str) -> None:
    service = COMPOSE["services"][name]

    assert 128 <= service["pids_limit"] <= 1024
    assert service["mem_limit"] in {"512m", "1g", "2g"}


def test_compose_explains_missing_digests() -> None:
    text = (ROOT / "compose.yaml").read_text()

    assert "@sha256:" in text or "Images have tags and no digests: " in text


@pytest.mark.parametrize("name", OURS)
def test_metric_files_have_their_own_file_system(name: str) -> None:
    service = COMPOSE["services"][name]
    mounts = dict(mount.split(":") for mount in service["tmpfs"])

    assert service["environment"]["VAR_DIR"] in mounts.keys() - {"/tmp"}
    # Only Docker uses uid=10001; the container has no other user.
    assert mounts[service["environment"]["VAR_DIR"]] == "size=32m,mode=1777"


def test_each_container_has_the_check_that_fits() -> None:
    """With the image's own, the other containers would be unhealthy, and `up --wait` would fail."""
    checks = {name: COMPOSE["services"][name].get("healthcheck") for name in OURS}

    assert checks.pop("service") is None
    assert checks.pop("migrate") == checks.pop("operator") == {"disable": True}
    assert checks
    for name, check in checks.items():
        *_, option = COMPOSE["services"][name]["command"]
        file = option.removeprefix("--heartbeat-file=")
        shell, probe = check["test"]
        assert shell == "CMD-SHELL"
        # In compose.yaml $$ is a dollar.
        assert probe.replace("$$", "$") == f'test -n "$(find {file} -mmin -10)"'
        assert file.startswith("/run/infra-service/")


def test_the_database_has_no_privileges() -> None:
    database = COMPOSE["services"]["database"]

    assert database["user"] == "postgres"
    assert database["read_only"] is True
    assert database["cap_drop"] == ["ALL"]
    assert "cap_add" not in database
    assert database["security_opt"] == ["no-new-privileges:true"]
    assert [mount.split(":")[0] for mount in database["tmpfs"]] == ["/tmp", "/var/run/postgresql"]
    assert "ports" not in database
    assert database["healthcheck"]["test"][0] == "CMD-SHELL"


def test_compose_runs_the_images_command_after_the_migrations() -> None:
    service = COMPOSE["services"]["service"]

    assert "command" not in service
    needs = {name: needed["condition"] for name, needed in service["depends_on"].items()}
    assert needs == {"operator": "service_completed_successfully"}
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_only_migrations_and_the_archive_run_as_the_owner() -> None:
    urls = {name: COMPOSE["services"][name]["environment"]["DATABASE_URL_FILE"] for name in OURS}
    database = COMPOSE["services"]["database"]

    assert {urls.pop(name) for name in AS_OWNER} == {"/secrets/owner/DATABASE_URL"}
    assert urls
    assert set(urls.values()) == {"/secrets/service/DATABASE_URL"}
    assert "POSTGRES_USER" not in database["environment"]
    _shell, _flag, line = COMPOSE["services"]["migrate"]["command"]
    assert line.endswith("grant_service_role infra")
    source, target, mode = database["volumes"][2].split(":")
    assert (ROOT / source).is_file()
    assert (target, mode) == ("/docker-entrypoint-initdb.d/create-roles.sql", "ro")
    for name in OURS:
        environment = COMPOSE["services"][name]["environment"]
        assert bool(environment["AUDIT_ARCHIVE_DIR"]) == (name == "archive")


def env_example() -> dict[str, str]:
    example = (ROOT / ".env.example").read_text()
    return dict(re.findall(r"^(\w+)=(.*)$", example, re.MULTILINE))


@pytest.mark.parametrize("name", OURS)
def test_each_setting_can_be_set_in_the_env_file(name: str) -> None:
    reference = (ROOT / "docs" / "reference" / "settings.md").read_text()
    known = set(re.findall(r"^\| `([A-Z_]+)` \|", reference, re.MULTILINE))
    service = COMPOSE["services"][name]
    environment = service["environment"]
    passwords = {"POSTGRES_PASSWORD", "OWNER_PASSWORD", "SERVICE_PASSWORD"}
    own = {"DATABASE_URL", "VAR_DIR", "BIND", "AUDIT_ARCHIVE_DIR"}
    generated = {"SECRET_KEY", "STATE_ENCRYPTION_KEYS"}

    assert service["env_file"] == [{"path": ".env", "required": False}]
    assert {key.removesuffix("_FILE") for key in environment} == own | generated | passwords
    assert own | generated <= known
    assert env_example().keys() - known == {"EXTRAS"}
    # The file may contain the passwords of the database, which the service does not receive.
    assert {environment[password] for password in passwords} == {""}


def test_compose_needs_no_file_of_settings() -> None:
    text = (ROOT / "compose.yaml").read_text()

    assert re.findall(r"\$\{(\w+)", text) == ["EXTRAS"]
    assert "${EXTRAS-s3}" in text


def compose() -> str | None:
    """Return the version of Docker Compose 2, if it is installed."""
    command = ["docker", "compose", "version", "--short"]
    if shutil.which("docker") is None:
        return None
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


@pytest.mark.skipif(compose() is None, reason="Docker Compose 2 is missing")
def test_compose_accepts_the_file() -> None:
    subprocess.run(
        ["docker", "compose", "--profile", "archive", "config", "--quiet"], cwd=ROOT, check=True
    )


def test_its_settings_are_taken() -> None:
    """The service's values if .env contains only the required settings."""
    secret = {
        "SECRET_KEY": secrets.token_urlsafe(50),
        "STATE_ENCRYPTION_KEYS": base64.b64encode(secrets.token_bytes(32)).decode(),
        "DATABASE_URL": "sqlite://:memory:",
        "VAR_DIR": "/nonexistent",
        "DJANGO_SETTINGS_MODULE": "infra_service.settings",
    }
    code = (
        "from django.conf import settings as s; print(s.CSRF_TRUSTED_ORIGINS, s.BEHIND_TLS_PROXY)"
    )

    output = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **env_example(), **secret},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout

    assert output == "[] False\n"
