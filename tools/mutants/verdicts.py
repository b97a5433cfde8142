"""Determine the verdict on a mutant in a forked process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from enum import StrEnum
from typing import Final

#: The pytest options for a fixed test order and minimal output.
PYTEST: Final = (
    "-q", "--no-header", "--no-summary", "--tb=no",
    "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:schemathesis",
)  # fmt: skip


class Verdict(StrEnum):
    """The result of the tests of a mutant."""

    KILLED = "killed"
    ALIVE = "alive"
    #: The mutated code has already run, so the mutant must be tested in a new process.
    ELSEWHERE = "elsewhere"


def in_a_fork(attempt: Callable[[], Verdict], seconds: float) -> Verdict:
    """Run the attempt in a fork and return its verdict; a crash or a timeout counts as killed."""
    verdicts = list(Verdict)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        code = verdicts.index(Verdict.KILLED)
        try:
            code = verdicts.index(attempt())
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return verdicts[os.WEXITSTATUS(status)] if os.WIFEXITED(status) else Verdict.KILLED


def skip_shrinking() -> None:
    """Disable shrinking in hypothesis, because any failing example kills a mutant."""
    # Imported late: pytest warns about plugins that were imported before it could rewrite them.
    from hypothesis import Phase, settings

    settings.register_profile(
        "mutants",
        parent=settings.get_profile(settings.get_current_profile_name()),
        phases=(Phase.explicit, Phase.generate),
        database=None,
        derandomize=True,
    )
    settings.load_profile("mutants")
