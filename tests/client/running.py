"""The client in a bare interpreter: without site packages and without the user's environment."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.installation import ROOT
from tests.support.waiting import MAX_WAIT, wait_until

CLIENT = ROOT / "deploy" / "client" / "infra"
#: The interpreter outside the virtual environment; -I ignores the environment and the user's
#: packages, -S the site packages.
BARE = [os.path.realpath(sys.executable), "-I", "-S", str(CLIENT)]


class Client:
    """The command ``infra`` of a person with an empty home directory."""

    def __init__(self, home: Path, url: str = "", token: str = "", **variables: str) -> None:
        self.home = home
        # No keyring: the only program on the PATH is git.
        self.environment = {"HOME": str(home), "PATH": str(home / "bin"), "LANG": "C.UTF-8"}
        if url:
            self.environment |= {"INFRA_URL": url, "INFRA_TOKEN": token}
        self.environment |= variables

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command whose output is collected; the caller waits for its end."""
        return subprocess.Popen(
            [*BARE, *words],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, code: int = 0, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end, and check its exit code."""
        done = subprocess.run(
            [*BARE, *words],
            cwd=self.home,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=MAX_WAIT,
            check=False,
        )
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    def json(self, *words: str) -> Any:
        """Return the JSON that a command writes."""
        return json.loads(self.run(*words, "--json").stdout)

    def on_terminal(self, *words: str, columns: int = 80, typed: str = "", code: int = 0) -> str:
        """Run a command on a terminal of this width; return all that the terminal received.

        ``typed`` is entered at the first prompt, which ends with a space.
        """
        with self.terminal(*words, columns=columns) as (terminal, process):
            shown = ""
            deadline = time.monotonic() + MAX_WAIT
            while time.monotonic() < deadline:
                ready, _, _ = select.select([terminal], [], [], 1)
                try:
                    shown += os.read(terminal, 65536).decode() if ready else ""
                except OSError:  # the other end is closed
                    break
                if typed and shown.endswith(" "):
                    # Python loses a signal that arrives just before it waits for input.
                    _wait_for_sleep(process)
                    os.write(terminal, typed.encode())
                    typed = ""
            assert process.wait(MAX_WAIT) == code, shown
        return shown.replace("\r\n", "\n")

    @contextlib.contextmanager
    def terminal(
        self, *words: str, columns: int = 80
    ) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
        """Start a command on a new terminal, which is its controlling terminal."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(
            ["setsid", "--ctty", *BARE, *words],
            cwd=self.home,
            env={**self.environment, "TERM": "xterm", "PATH": os.environ["PATH"]},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        try:
            yield ours, process
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(ours)


def _wait_for_sleep(process: subprocess.Popen[bytes]) -> None:
    stat = Path(f"/proc/{process.pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "S")
