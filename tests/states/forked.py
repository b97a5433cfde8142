"""Fork processes that run a command, and kill them at a chosen statement with SIGKILL.

Python and Django start only once. ``python -m tests.states.forked`` reads a line of JSON per round:
the arguments of the command and, for each simultaneous run, the number of the write statement that
kills it, or null. With "reads", SELECT statements count too. It prints the exit codes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import django

from tests.support.installation import ROOT

ERROR = 1
#: Runs a command in a process for each number of ``kill_at``; returns their exit codes.
Fork = Callable[..., list[int]]


@contextlib.contextmanager
def forking(environment: dict[str, str]) -> Iterator[Fork]:
    """Yield a function that runs a command with this environment."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.states.forked"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        given, answers = process.stdin, process.stdout
        assert given is not None
        assert answers is not None

        def run(*arguments: str, kill_at: Sequence[int | None], reads: bool = False) -> list[int]:
            task = {"arguments": arguments, "kill_at": kill_at, "reads": reads}
            given.write(json.dumps(task) + "\n")
            given.flush()
            codes: list[int] = json.loads(answers.readline())
            return codes

        yield run
        process.kill()


def main() -> None:
    django.setup()
    for line in sys.stdin:
        task = json.loads(line)
        reads = task.get("reads", False)
        children = [run(task["arguments"], kill_at, reads) for kill_at in task["kill_at"]]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps(codes), flush=True)  # noqa: T201 - the answer


def run(arguments: list[str], kill_at: int | None, reads: bool) -> int:
    child = os.fork()
    if child:
        return child
    code = ERROR
    try:
        called(arguments, kill_at, reads)
        code = 0
    finally:
        os._exit(code)


def called(arguments: list[str], kill_at: int | None, reads: bool) -> None:
    from django.core.management import call_command  # noqa: PLC0415 - once it is set up
    from django.db import connection  # noqa: PLC0415

    seen = 0

    def count(execute: Any, sql: str, *given: Any) -> Any:
        nonlocal seen
        seen += reads or not sql.startswith("SELECT")
        if seen == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return execute(sql, *given)

    with Path(os.devnull).open("w") as nowhere, connection.execute_wrapper(count):
        call_command(*arguments, stdout=nowhere, stderr=nowhere)


if __name__ == "__main__":
    main()
