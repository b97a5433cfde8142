"""A Terraform working directory, isolated from the machine and from its user's settings."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

BINARY = shutil.which("terraform") or shutil.which("tofu")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BACKEND = """terraform {
  backend "http" {
    address        = "%(address)s"
    lock_address   = "%(lock)s"
    unlock_address = "%(lock)s"
  }
}
"""


class Done:
    """The exit code of a command, and its output without colours and frames."""

    def __init__(self, code: int, out: str) -> None:
        self.code = code
        self.out = " ".join(_COLOUR.sub("", out).replace("│", " ").split())


class Terraform:
    """A working directory with a configuration."""

    def __init__(self, directory: Path, address: str, password: str, **variables: str) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        settings = directory / "cli.tfrc"
        settings.write_text("disable_checkpoint = true\n")
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory / "home"),
            "TF_DATA_DIR": str(directory / ".terraform"),
            "TF_CLI_CONFIG_FILE": str(settings),
            "CHECKPOINT_DISABLE": "1",
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "TF_HTTP_USERNAME": "token",
            "TF_HTTP_PASSWORD": password,
            # So that a test of a refusal does not wait for the client's retries.
            "TF_HTTP_RETRY_WAIT_MIN": "0",
            **variables,
        }
        if address:
            self.use_backend(address)

    def use_backend(self, address: str, lock_address: str = "") -> None:
        names = {"address": address, "lock": lock_address or address}
        (self.directory / "backend.tf").write_text(_BACKEND % names)

    def write(self, configuration: str) -> None:
        (self.directory / "main.tf").write_text(configuration)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command as a process group, like a terminal."""
        assert BINARY is not None
        return subprocess.Popen(
            [BINARY, *arguments],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, code: int = 0) -> Done:
        """Run a command, which must end with this exit code."""
        done = ended(self.start(*arguments))
        assert done.code == code, done.out
        return done

    def apply(self, *arguments: str, code: int = 0) -> Done:
        return self.run("apply", "-auto-approve", *arguments, code=code)

    def raw(self, *arguments: str) -> bytes:
        """Return the exact standard output of a command."""
        assert BINARY is not None
        done = subprocess.run(
            [BINARY, *arguments],
            cwd=self.directory,
            env=self.environment,
            check=True,
            stdout=subprocess.PIPE,
        )
        return done.stdout

    def pulled(self) -> bytes:
        """Return the output of ``state pull``, which appends a line break to the document."""
        return self.raw("state", "pull").removesuffix(b"\n")

    def pull(self) -> Any:
        return json.loads(self.pulled())

    def resources(self) -> list[str]:
        return self.raw("state", "list").decode().split()


def ended(process: subprocess.Popen[str], timeout: float = 120) -> Done:
    """Wait for a command, and read its output."""
    try:
        out, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
        sys.stderr.write(out)
        raise
    return Done(process.returncode, out)
