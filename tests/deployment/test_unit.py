"""The units of docs/how-to: minimal permissions, separate directories, and secrets per process."""

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deployment.units import HOW_TO, values
from tests.support.installation import ROOT

GUNICORN = ROOT / "infra_service" / "gunicorn.py"
UNITS = {path.stem: path.read_text() for path in HOW_TO.glob("infra-*.service")}
UNIT = UNITS["infra-service@"]
PAGE = (HOW_TO / "deploy.md").read_text()
#: The only units with the role that owns the tables.
OF_THE_OWNER = {"infra-migrate", "infra-archive"}
OF_THE_SERVICE = UNITS.keys() - OF_THE_OWNER
SECRETS = {
    "SECRET_KEY", "SECRET_KEY_FALLBACKS", "STATE_ENCRYPTION_KEYS", "DATABASE_URL",
    "DATABASE_REPLICA_URL", "CACHE_URL", "STATE_STORAGE_URL", "OIDC_CLIENT_SECRET",
}  # fmt: skip
MANAGE = "/opt/infra-service/.venv/bin/python manage.py"


@pytest.mark.parametrize("name", UNITS)
def test_it_has_no_rights(name: str) -> None:
    unit = UNITS[name]

    if name in OF_THE_OWNER:
        # A process of the service's user can read the environment of its other processes.
        assert values(unit, "DynamicUser") == ["true"]
        assert values(unit, "User") == []
    else:
        assert values(unit, "User") == ["infra"]
    assert values(unit, "CapabilityBoundingSet") == [""]
    assert values(unit, "NoNewPrivileges") == ["true"]
    assert values(unit, "ProtectSystem") == ["strict"]
    assert values(unit, "PrivateTmp") == ["true"]


def test_it_writes_only_to_its_own_directories() -> None:
    directories = {f"/run/{name}" for name in values(UNIT, "RuntimeDirectory")[0].split()}
    environment = dict(pair.split("=", 1) for pair in values(UNIT, "Environment"))

    # Except for /tmp, which is private; accessible only to this user.
    assert environment["VAR_DIR"] in directories
    assert values(UNIT, "RuntimeDirectoryMode") == ["0700"]
    assert environment["PORT"] == "%i"


def test_it_migrates_and_then_runs_our_server() -> None:
    (start,) = values(UNIT, "ExecStart")

    assert values(UNIT, "Requires") == ["infra-migrate.service"]
    assert "infra-migrate.service" in values(UNIT, "After")[0]
    assert values(UNITS["infra-migrate"], "ExecStart") == [
        f"{MANAGE} migrate", f"{MANAGE} setup_groups", f"{MANAGE} grant_service_role infra",
    ]  # fmt: skip
    command = "gunicorn -c python:infra_service.gunicorn infra_service.wsgi"
    assert start == f"/opt/infra-service/.venv/bin/{command}"
    # A reload would mix new code into a process with old code.
    assert values(UNIT, "ExecReload") == []


def test_the_log_does_not_name_an_ignored_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIND", "10.0.0.21:8000")
    assert runpy.run_path(str(GUNICORN))["_address"] == "10.0.0.21:8000"

    monkeypatch.setenv("LISTEN_FDS", "1")  # as systemd sets it with infra-port@.socket
    assert runpy.run_path(str(GUNICORN))["_address"] == "systemd"


def test_it_waits_longer_for_its_end_than_requests_may_take() -> None:
    (graceful,) = re.findall(r"^graceful_timeout = (\d+)$", GUNICORN.read_text(), re.MULTILINE)

    assert int(values(UNIT, "TimeoutStopSec")[0]) > int(graceful)


@pytest.mark.parametrize("name", UNITS)
def test_the_owners_password_is_for_the_owners_units_alone(name: str) -> None:
    files = values(UNITS[name], "EnvironmentFile")

    expected = ["/etc/infra-service.env"]
    if name in OF_THE_OWNER:
        expected.append("/etc/infra-owner.env")
    assert files == expected
    for path in files:
        assert f"install -m 600 /dev/null {path}" in PAGE
    assert ("infra-owner" in UNITS[name]) is (name in OF_THE_OWNER)
    assert not re.search("SECRET_KEY=|KEYS=|DATABASE_URL=", UNITS[name])


@pytest.mark.parametrize("name", UNITS)
def test_each_unit_loads_the_secrets_that_may_lie_in_files(name: str) -> None:
    loaded = values(UNITS[name], "LoadCredential")

    owners = ["infra-owner.DATABASE_URL"] if name in OF_THE_OWNER else []
    assert sorted(loaded) == sorted([*owners, *(f"infra-service.{each}" for each in SECRETS)])
    listed = PAGE[PAGE.index("The units load") : PAGE.index("The owner's URL goes")]
    assert set(re.findall(r"`([A-Z_]+)`", listed)) == SECRETS


def test_only_the_archive_unit_runs_the_archive() -> None:
    archive = UNITS["infra-archive"]

    assert values(archive, "StateDirectory") == ["infra-archive"]
    assert values(archive, "StateDirectoryMode") == ["0700"]
    assert "AUDIT_ARCHIVE_DIR=/var/lib/infra-archive" in values(archive, "Environment")
    (start,) = values(archive, "ExecStart")
    assert start.startswith(f"{MANAGE} housekeeping --only events --only partitions --max-seconds ")
    for name in UNITS.keys() - {"infra-archive"}:
        assert "AUDIT_ARCHIVE_DIR" not in UNITS[name]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
def test_systemd_reads_the_units(tmp_path: Path) -> None:
    """Without the installed programs, which systemd checks as well."""
    names = []
    for path in (*HOW_TO.glob("infra-*.service"), *HOW_TO.glob("infra-*.timer")):
        text = re.sub(
            r"^ExecStart=.*$", "ExecStart=/bin/true", path.read_text(), flags=re.MULTILINE
        )
        (tmp_path / path.name).write_text(text)
        names.append(str(tmp_path / path.name.replace("@.", "@8000.")))

    done = subprocess.run(
        ["systemd-analyze", "verify", *names],
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
        check=False,
        capture_output=True,
        text=True,
    )

    warnings = [line for line in done.stderr.splitlines() if "infra-" in line]
    assert (done.returncode, warnings) == (0, [])
