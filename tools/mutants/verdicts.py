"""The verdict on a mutant, determined in a process of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from enum import StrEnum
from typing import Final

#: How the tests are run: in an order of our own, and without what only readers of failures need.
PYTEST: Final = (
    "-q", "--no-header", "--no-summary", "--tb=no",
    "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:schemathesis",
)  # fmt: skip


class Verdict(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    ALIVE = "alive"
    #: Its code has run already, and is not run by the tests.
    ELSEWHERE = "elsewhere"


def in_a_fork(attempt: Callable[[], Verdict], seconds: float) -> Verdict:
    """Return the attempt's verdict; one that breaks, or lasts too long, has killed its mutant."""
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


def look_for_no_shortest_example() -> None:
    """Any example that fails kills a mutant; hypothesis need not look for the smallest."""
    # Not above: pytest warns of plugins that were imported before it could rewrite them.
    from hypothesis import Phase, settings

    settings.register_profile(
        "mutants",
        parent=settings.get_profile(settings.get_current_profile_name()),
        phases=(Phase.explicit, Phase.generate),
        database=None,
        derandomize=True,
    )
    settings.load_profile("mutants")
