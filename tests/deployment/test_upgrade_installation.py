"""docs/how-to/upgrade.md: its commands under a real systemd, with one instance and traffic."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final

import pytest

from tests.deployment.proxies import nginx_file, running
from tests.deployment.roles import Roles
from tests.deployment.systemd import Systemd, booted
from tests.e2e.database import snapshot
from tests.e2e.traffic import Traffic
from tests.support.installation import ROOT
from tests.support.postgres import free_port
from tests.support.server import Answer, LiveServer
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not os.environ.get("DATABASE_URL", "").startswith("postgres"),
        reason="the units need both roles of PostgreSQL",
    ),
]

RELEASES: Final = "/opt/infra-service-releases"
PAGE: Final = (ROOT / "docs" / "how-to" / "upgrade.md").read_text()
UNITS: Final = (
    "infra-service@.service", "infra-port@.socket", "infra-migrate.service", "infra-index.service",
    "infra-webhooks.service", "infra-housekeeping.service", "infra-housekeeping.timer",
)  # fmt: skip
#: The packages of this environment, for a Python that the user infra may read. One extra remains to
#: be installed: pip takes long even where it finds all packages.
_VENV: Final = """
cd {release}
/usr/bin/python3 -m venv --without-pip .venv
echo /opt/site-packages > .venv/lib/{python}/site-packages/tests.pth
program() {{
    printf '%s\\n' '#!{release}/.venv/bin/python' "from $2 import $3" "$3()" > .venv/bin/$1
    chmod +x .venv/bin/$1
}}
program gunicorn gunicorn.app.wsgiapp run
program pip pip._internal.cli.main main
touch .venv/run .venv/extra-s3 .venv/extra-otel .venv/extra-kubernetes
"""


def commands(heading: str) -> list[str]:
    """Return the commands of a section of the page."""
    section = PAGE.split(f"\n{heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^# (.+)$", section, re.MULTILINE)


class Proxied(LiveServer):
    """The service behind nginx; every answer and every failure is counted."""

    def __init__(self, port: int) -> None:
        self.port, self.answers = port, Counter[str]()

    def request(self, *given: Any, **more: Any) -> Answer:
        try:
            answer = super().request(*given, **more)
        except (OSError, http.client.HTTPException) as error:
            self.answers[repr(error)] += 1
            raise
        is_busy = answer.status == 503 and "Retry-After" in answer.headers
        self.answers["503 with Retry-After" if is_busy else str(answer.status)] += 1
        return answer


@dataclass
class Machine:
    """A machine with the service installed by docs/how-to/deploy.md."""

    system: Systemd
    roles: Roles
    port: int = field(default_factory=free_port)

    def copy(self, version: str) -> None:
        """Copy a release beside the others, with a separate environment."""
        release = f"{RELEASES}/{version}"
        self.system.run(f"mkdir -p {RELEASES} && cp -r /opt/source {release}")
        self.system.write(f"{release}/infra_service/__init__.py", f'__version__ = "{version}"\n')
        python = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.system.run(_VENV.format(release=release, python=python))

    def install(self, version: str) -> None:
        self.copy(version)
        keys = ("SECRET_KEY", "STATE_ENCRYPTION_KEYS", "DATABASE_URL")
        settings = "".join(f"{k}={self.roles.serving.environment[k]}\n" for k in keys)
        more = "ALLOWED_HOSTS=*\nBEHIND_TLS_PROXY=true\nRATE_LIMIT_FAILURES=0\n"
        more += f'BIND="127.0.0.1:{self.port}"\n'
        self.system.write("/etc/infra-service.env", settings + more)
        owner = self.roles.migrating.environment["DATABASE_URL"]
        self.system.write("/etc/infra-owner.env", f"DATABASE_URL={owner}\n")
        self.system.run(
            "useradd --system --home-dir /opt/infra-service infra;"
            "chmod 600 /etc/infra-service.env /etc/infra-owner.env;"
            f"ln -s infra-service-releases/{version} /opt/infra-service;"
            "cd /opt/infra-service/docs/how-to;"
            f"cp {' '.join(UNITS)} /etc/systemd/system/;"
            f"sed -i 's/grant_service_role infra/grant_service_role {self.roles.service}/'"
            " /etc/systemd/system/infra-migrate.service; systemctl daemon-reload;"
            f"systemctl enable --now infra-port@{self.port}.socket infra-service@{self.port};"
            "systemctl enable --now infra-index infra-webhooks infra-housekeeping.timer"
        )

    def version(self) -> str:
        """Return the version of the running service; the socket delays the request until it is
        ready.
        """
        answer = self.direct.request("GET", "/readyz").json()
        return str(answer["version"])

    @property
    def direct(self) -> LiveServer:
        server = LiveServer.__new__(LiveServer)
        server.port = self.port
        return server

    def wait_until_all_run(self, version: str) -> None:
        """Wait until each unit's process, which starts in ``/``, has entered this release."""
        wait_until(lambda: set(self.directories().values()) == {f"{RELEASES}/{version}"})

    def directories(self) -> dict[str, str]:
        """Return the release that each running unit has loaded."""
        units = (f"infra-service@{self.port}", "infra-index", "infra-webhooks")
        script = "; ".join(
            f"readlink /proc/$(systemctl show --property=MainPID --value {unit})/cwd"
            for unit in units
        )
        return dict(zip(units, self.system.run(script).split(), strict=True))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    scratch = tmp_path_factory.mktemp("machine")
    packages = Path(str(distribution("django").locate_file("")))
    if shutil.which("python3", path="/usr/bin") is None:
        pytest.skip("the user infra needs a Python outside of home directories")
    hidden = shutil.ignore_patterns(".*", "tests", "var", "__pycache__")
    shutil.copytree(ROOT, scratch / "source", ignore=hidden)
    with (
        contextlib.closing(Roles(scratch)) as roles,
        booted(
            scratch, {scratch / "source": "/opt/source", packages: "/opt/site-packages"}
        ) as system,
    ):
        machine = Machine(system, roles)
        machine.install("1.0.0")
        roles.serving.port = machine.port
        wait_until(lambda: machine.version() == "1.0.0")
        roles.migrating.make_operator()
        yield machine


@pytest.fixture
def traffic(machine: Machine, tmp_path: Path) -> Iterator[Traffic]:
    """Clients behind nginx with deploy/nginx.conf and one instance, which push and lock."""
    token = machine.roles.serving.token("state:read,state:write,state:admin")
    port = free_port()
    both = nginx_file(f"127.0.0.1:{port}", [f"127.0.0.1:{machine.port}", "10.0.0.22:1"])
    one = re.sub(r" +server 10.0.0.22:1 .*\n", "", both)  # the file's instruction
    with running("nginx", one, port, tmp_path):
        traffic = Traffic(Proxied(port), token)
        traffic.start(persistent=True)
        try:
            traffic.wait_until_each_has(2)
            yield traffic
        finally:
            traffic.stop()


def compared(machine: Machine, traffic: Traffic) -> None:
    """Compare every push with the stored versions, after pushes to the new instance."""
    traffic.wait_until_each_has(2)
    traffic.stop()
    assert isinstance(traffic.server, Proxied)
    assert set(traffic.server.answers) <= {"200", "409", "423", "503 with Retry-After"}
    assert traffic.unexpected == []
    for ledger in traffic.ledgers:
        ledger.backend.server = machine.direct
    found = snapshot(machine.roles.serving, *(ledger.backend for ledger in traffic.ledgers))
    assert [wrong for ledger in traffic.ledgers for wrong in ledger.broken_promises(found)] == []


def test_upgrade_and_downgrade_lose_no_data(machine: Machine, traffic: Traffic) -> None:
    clone, checkout, upgrade, *_ = commands("## With systemd")
    (back,) = commands("## Downgrade")
    assert clone == f"git clone <this repository> {RELEASES}/1.1.0"
    assert checkout == f"git -C {RELEASES}/1.1.0 checkout <tag or commit of 1.1.0>"
    machine.copy("1.1.0")

    printed = machine.system.run(upgrade)

    assert "with the extras: s3 sso otel kubernetes" in printed
    assert machine.version() == "1.1.0"
    machine.wait_until_all_run("1.1.0")
    assert machine.system.run("systemctl is-active infra-housekeeping.timer").strip() == "active"

    with _without_webhooks(machine.system):
        printed = machine.system.run(back)

    assert printed.endswith(f"/opt/infra-service is {RELEASES}/1.0.0\n")
    assert machine.version() == "1.0.0"
    machine.wait_until_all_run("1.0.0")
    compared(machine, traffic)


@contextlib.contextmanager
def _without_webhooks(system: Systemd) -> Iterator[None]:
    """Remove the unit of webhooks, and add a collector, which the downgrade must restart."""
    webhooks = "/etc/systemd/system/infra-webhooks.service"
    collector = "/etc/systemd/system/infra-collector.service"
    pid = "systemctl show --property=MainPID --value infra-collector"
    system.write(collector, "[Service]\nExecStart=/bin/sleep infinity\n")
    system.run(
        f"systemctl disable --now infra-webhooks; mv {webhooks} /root/; systemctl daemon-reload;"
        "systemctl start infra-collector"
    )
    before = system.run(pid)
    yield
    assert system.run(pid) != before
    system.run(
        f"systemctl stop infra-collector; rm {collector};"
        f"mv /root/infra-webhooks.service {webhooks}; systemctl enable --now infra-webhooks"
    )


def test_failure_before_the_restart_makes_no_changes(
    machine: Machine, subtests: pytest.Subtests
) -> None:
    running = machine.directories()
    machine.copy("1.2.0")

    def fails_with(text: str) -> None:
        with pytest.raises(AssertionError, match=text):
            machine.system.run(f"{RELEASES}/1.2.0/deploy/upgrade.sh")
        assert machine.system.run("readlink -f /opt/infra-service").strip() == f"{RELEASES}/1.0.0"
        assert machine.directories() == running

    for file, text in (("service", "DATABASE_POOL_MAX"), ("owner", "The migration failed")):
        with subtests.test(file), _setting(machine.system, f"/etc/infra-{file}.env"):
            fails_with(text)


@contextlib.contextmanager
def _setting(system: Systemd, file: str) -> Iterator[None]:
    """Add a setting that the service refuses."""
    system.run(f"cp {file} /root/saved && echo DATABASE_POOL_MAX=many >> {file}")
    yield
    system.run(f"cp /root/saved {file}")


def test_systemd_accepts_the_units(machine: Machine) -> None:
    names = " ".join(name.replace("@", f"@{machine.port}") for name in UNITS)
    assert machine.system.run(f"systemd-analyze verify {names}") == ""
