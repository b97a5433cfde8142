"""manage.py for a walk of many commands: each is a fork of a process that has loaded the service.

The start of Python and the loading of the service take a second, most of the time of most commands.
Only that differs from a real start: a fork has the command's own arguments, directory and streams,
and runs manage.py to the end of Python. Settings are read once, so that all commands share an
environment.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.installation import ROOT

# Without the modules that Python loads for itself it starts in a few milliseconds.
_CLIENT = """
import json, os, socket, sys
place, *arguments = sys.argv[1:]
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as service:
    service.connect(place)
    message = json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(service, [message], [0, 1, 2])
    sys.exit(int(service.recv(16)))
"""
# Variables that a shell sets itself.
_SHELLS = {"_", "OLDPWD", "PWD", "SHLVL"}


@contextlib.contextmanager
def manage_py(directory: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the command that replaces ``python manage.py`` in a shell."""
    place, client = directory / "manage.socket", directory / "manage_client.py"
    client.write_text(_CLIENT)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(place))
        listener.listen()
        loaded = subprocess.Popen(
            [sys.executable, "-m", "tests.docs.warm"],
            cwd=ROOT,
            env={**environment, "PYTHONPATH": str(ROOT)},
            stdin=listener,
            start_new_session=True,
        )
    try:
        yield f"{sys.executable} -I -S {client} {place}"
    finally:
        os.killpg(loaded.pid, signal.SIGKILL)
        loaded.wait()


def main() -> None:
    """Load the service; return only in forks, each of which runs a command."""
    import django  # noqa: PLC0415

    django.setup()
    gc.freeze()
    listener = socket.socket(fileno=os.dup(0))
    while True:
        caller, _ = listener.accept()
        with caller:
            message, streams, _, _ = socket.recv_fds(caller, 1 << 16, 3)
            if (pid := os.fork()) == 0:
                listener.close()
                _become(*json.loads(message), streams)
                return
            for stream in streams:
                os.close(stream)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            caller.send(str(code).encode())


def _become(
    arguments: list[str], directory: str, environment: dict[str, str], streams: list[int]
) -> None:
    """Take over the arguments, directory and streams of the calling process."""
    own, given = (
        {name: value for name, value in one.items() if name not in {*_SHELLS, "PYTHONPATH"}}
        for one in (os.environ, environment)
    )
    assert own == given, "settings are read already"
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(directory)
    sys.argv = ["manage.py", *arguments]


if __name__ == "__main__":
    main()
    import manage

    manage.main()
