"""docs/how-to/infra-service@.service: nobody's rights, our server, and files where it may write."""

import re

from tests.support.installation import ROOT

UNIT = (ROOT / "docs" / "how-to" / "infra-service@.service").read_text()
MIGRATE = (ROOT / "docs" / "how-to" / "infra-migrate.service").read_text()
PAGE = (ROOT / "docs" / "how-to" / "deploy.md").read_text()


def values(name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE)


def test_it_has_no_rights() -> None:
    assert values("User") == ["infra"]
    assert values("CapabilityBoundingSet") == [""]
    assert values("NoNewPrivileges") == ["true"]
    assert values("ProtectSystem") == ["strict"]


def test_it_writes_only_to_its_own_directories() -> None:
    directories = {f"/run/{name}" for name in values("RuntimeDirectory")[0].split()}
    environment = dict(pair.split("=", 1) for pair in values("Environment"))

    # Apart from /tmp; and of this user alone.
    assert environment["VAR_DIR"] in directories
    assert values("RuntimeDirectoryMode") == ["0700"]
    assert values("PrivateTmp") == ["true"]
    assert environment["PORT"] == "%i"


def test_it_migrates_and_then_runs_our_server() -> None:
    (directory,) = values("WorkingDirectory")
    (start,) = values("ExecStart")

    manage = f"{directory}/.venv/bin/python manage.py"
    assert values("Requires") == ["infra-migrate.service"]
    assert "infra-migrate.service" in values("After")[0]
    migrations = re.findall(r"^ExecStart=(.*)$", MIGRATE, re.MULTILINE)
    assert migrations == [
        f"{manage} migrate", f"{manage} setup_groups", f"{manage} grant_service_role infra",
    ]  # fmt: skip
    command = "gunicorn -c python:infra_service.gunicorn infra_service.wsgi"
    assert start == f"{directory}/.venv/bin/{command}"
    # A reload would run new code in a process that has a part of the old.
    assert values("ExecReload") == []


def test_it_waits_longer_for_its_end_than_requests_may_take() -> None:
    gunicorn = (ROOT / "infra_service" / "gunicorn.py").read_text()
    (graceful,) = re.findall(r"^graceful_timeout = (\d+)$", gunicorn, re.MULTILINE)

    assert int(values("TimeoutStopSec")[0]) > int(graceful)


def test_the_secrets_are_in_a_file_of_their_own() -> None:
    (file,) = values("EnvironmentFile")
    ours, owners = re.findall(r"^EnvironmentFile=(.*)$", MIGRATE, re.MULTILINE)

    assert ours == file
    for path in (file, owners):
        assert f"install -m 600 /dev/null {path}" in PAGE
    assert not re.search("SECRET_KEY=|KEYS=|DATABASE_URL=", UNIT + MIGRATE)


def test_the_owners_password_is_not_the_services() -> None:
    """Who runs as the service's user reads what its other processes have in their environment."""
    assert "DynamicUser=true" in MIGRATE
    assert "infra-owner" not in UNIT
