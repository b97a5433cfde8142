"""Files in which worker processes keep their counts, so that each can report all.

prometheus_client gives each process a file for each type of metric, mapped into its memory, in the
directory ``PROMETHEUS_MULTIPROC_DIR``, if that is set when it is imported; so here it is imported
late, because gunicorn's settings import this before the server sets it.

The blocks of each file are allocated before it is mapped (infra_service.operations.allocated).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
# No process has this id: what those that are gone had counted.
_EXITED: Final = 0
# The types of metric that the service has.
_KINDS: Final = ("counter", "histogram")


def create(directory: Path) -> None:
    """Make the directory, for this user alone, and empty it: each start counts from 0.

    All that counts from now on, here and in forks of this process, counts in it.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in directory.glob("*.db"):
        left.unlink()
    os.environ[VARIABLE] = str(directory)
    from infra_service.operations.allocated import install  # noqa: PLC0415 - see above

    install()


def merge_exited_worker(pid: int) -> None:
    """Add the counts of an exited worker to those of all workers that exited before it.

    Lost counts would let sums fall; and with a file for each process that ever was, each reload
    would make scrapes slower.
    """
    from infra_service.operations.allocated import AllocatedDict, forget  # noqa: PLC0415 - see above

    forget(pid)
    directory = Path(os.environ[VARIABLE])
    with _locked(fcntl.LOCK_EX):
        for own in directory.glob(f"*_{pid}.db"):
            path = own.with_name(own.name.replace(f"_{pid}.", f"_{_EXITED}."))
            if not path.exists():  # on a full disk, too
                own.rename(path)
                continue
            total = AllocatedDict(str(path))
            for key, value, _time, _place in AllocatedDict.read_all_values_from_file(str(own)):
                total.write_value(key, total.read_value(key)[0] + value, 0.0)
            total.close()
            own.unlink()


def allocate() -> None:
    """Create the files of this worker's figures; on a full disk the worker counts in memory."""
    from infra_service.operations.allocated import AllocatedDict  # noqa: PLC0415 - see above

    for kind in _KINDS:
        AllocatedDict(str(Path(os.environ[VARIABLE], f"{kind}_{os.getpid()}.db"))).close()


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Read the files while none of them is being added to another."""
    if VARIABLE not in os.environ:  # a process that keeps its counts in its own memory
        yield
        return
    with _locked(fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def _locked(how: int) -> Iterator[None]:
    directory = os.open(os.environ[VARIABLE], os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(directory, how)
        yield
    finally:
        os.close(directory)
