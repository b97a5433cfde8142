"""Start the units of docs/how-to like systemd, from copies in a test's directory.

This covers environment files, credentials, directories and commands. It does not cover users and
the sandbox, which need systemd.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from infra_service.lib.commandline import environment_files
from tests.support.installation import ROOT
from tests.support.server import LiveServer

HOW_TO: Final = ROOT / "docs" / "how-to"
_PYTHON: Final = "/opt/infra-service/.venv/bin/"


def values(unit: str, name: str) -> list[str]:
    """Return the values of a setting in the text of a unit, in their order."""
    return re.findall(rf"^{name}=(.*)$", unit, re.MULTILINE)


class Machine:
    """The directories of a machine, below one of a test: ``/etc/x`` is ``<place>/etc/x``."""

    def __init__(self, place: Path) -> None:
        self.place = place
        for name in ("etc/systemd/system", "run", "var/lib"):
            (place / name).mkdir(parents=True)

    def path(self, name: str) -> Path:
        """Return the location of a path of the machine."""
        return self.place / name.removeprefix("/")

    def unit(self, name: str) -> str:
        """Return the text of an installed unit; of an instance, with its name filled in."""
        prefix, at, instance = name.partition("@")
        text = self.path(f"/etc/systemd/system/{prefix}{at}.service").read_text()
        return text.replace("%i", instance)

    def environment(self, name: str) -> dict[str, str]:
        """Return the environment of a unit's processes, and make the unit's directories."""
        unit = self.unit(name)
        found = {"PATH": os.environ["PATH"]}
        found |= dict(pair.split("=", 1) for pair in values(unit, "Environment"))
        for file in values(unit, "EnvironmentFile"):
            found |= dict(environment_files.read(self.path(file)))
        for setting, parent in (("RuntimeDirectory", "/run"), ("StateDirectory", "/var/lib")):
            for directory in values(unit, setting):
                self.path(f"{parent}/{directory}").mkdir(mode=0o700, exist_ok=True)
        for variable in ("VAR_DIR", "AUDIT_ARCHIVE_DIR"):
            if variable in found:
                found[variable] = str(self.path(found[variable]))
        return found | self._credentials(name, unit)

    def _credentials(self, name: str, unit: str) -> dict[str, str]:
        directory = self.path(f"/run/credentials/{name}")
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        for credential in values(unit, "LoadCredential"):
            source = self.path(f"/etc/credstore/{credential}")
            if source.exists():
                shutil.copy(source, directory)
        return {"CREDENTIALS_DIRECTORY": str(directory)}

    def commands(self, name: str) -> list[list[str]]:
        """Return the arguments of a unit's programs, with the Python of the tests."""
        found = []
        for line in values(self.unit(name), "ExecStart"):
            program, *arguments = shlex.split(line)
            assert program.startswith(_PYTHON), line
            module = program.removeprefix(_PYTHON)
            found.append(
                [sys.executable, *(["-m", module] if module != "python" else ()), *arguments]
            )
        return found

    def start(self, name: str) -> None:
        """Run the programs of a unit to their end; of a continuous program, a single round."""
        for arguments in self.commands(name):
            command = [argument for argument in arguments if argument != "--watch"]
            subprocess.run(command, cwd=ROOT, env=self.environment(name), check=True, timeout=120)


class Instance(LiveServer):
    """A unit that serves requests."""

    def __init__(self, machine: Machine, name: str) -> None:
        self.machine, self.name = machine, name
        directory = machine.path(f"/run/{name.replace('@', '-')}")
        directory.mkdir(exist_ok=True)
        super().__init__(directory, DATABASE_URL="of the unit")

    def start(self) -> None:
        (command,) = self.machine.commands(self.name)
        environment = self.machine.environment(self.name) | {"PORT": str(self.port)}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.wait_until_ready(self._process)
