"""Background commands of ``make run``: restarted when they exit, and stopped with the server."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Final, TextIO, cast

from infra_service.lib.commandline.error_output import ErrorOutput
from infra_service.lib.commandline.stopping import stop_at_eof

_ROOT: Final = Path(__file__).resolve().parent.parent
#: Seconds before the restart of an exited command.
_PAUSE: Final = 2.0


def main() -> None:
    """Run the named commands until standard input, a pipe of the server, is closed."""
    sys.stderr = cast("TextIO", ErrorOutput(sys.stderr))
    ended = threading.Event()
    stop_at_eof(ended)
    workers = [
        threading.Thread(target=_run_with_restarts, args=(name, ended)) for name in sys.argv[1:]
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _run_with_restarts(name: str, ended: threading.Event) -> None:
    # The command reads the same pipe, so it ends with the server even if this process is killed.
    command = [sys.executable, "manage.py", name, "--watch", "--until-eof"]
    while True:
        process = subprocess.run(  # noqa: S603 - our own command
            command, cwd=_ROOT, stdout=subprocess.DEVNULL, check=False
        )
        if ended.wait(_PAUSE):
            return
        sys.stderr.write(f"{name} exited with status {process.returncode} and is restarted\n")


if __name__ == "__main__":
    main()
