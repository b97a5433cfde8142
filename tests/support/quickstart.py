"""``make run``, started by a test with a separate port and directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.installation import ROOT
from tests.support.server import LiveServer

# Variables that make run generates itself, and that a developer's shell does not have.
GENERATED = {"SECRET_KEY", "STATE_ENCRYPTION_KEYS", "BIND", "DJANGO_SETTINGS_MODULE"}


class Quickstart:
    """``make run`` in a separate terminal."""

    def __init__(self, place: LiveServer, var: Path) -> None:
        self.place, self.var = place, var
        place.create_database()
        self.environment = {k: v for k, v in place.environment.items() if k not in GENERATED}
        self.environment["VAR_DIR"] = str(var)
        module = ("-m", "infra_service.quickstart")
        self.command = [sys.executable, *module, "--port", str(place.port)]
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """Start it; return its output until it serves."""
        with self.place.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self.place.wait_until_ready(self.process)
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        return self.process.stdout.read()

    def interrupt(self) -> int:
        """Press Ctrl-C, which reaches every process of the terminal; return the exit code."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGINT)
        code = self.process.wait(30)
        self.close()
        return code

    def close(self) -> None:
        if self.process is not None:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None
