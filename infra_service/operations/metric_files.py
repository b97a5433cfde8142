"""Files for the metrics of worker processes, so that each worker can report the sum.

prometheus_client maps a file per process and metric type in ``PROMETHEUS_MULTIPROC_DIR``, if that
variable is set at import time. This module imports prometheus_client late, because gunicorn's
settings import this module before the server sets the variable.

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
# The number of the files with the sums of exited processes. It is not a valid process id.
_EXITED: Final = 0
# The metric types of the service.
_KINDS: Final = ("counter", "histogram")


def create(directory: Path) -> None:
    """Create the directory for this user only, and empty it, so that each start counts from 0.

    This process and its forks then store their metrics there.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in directory.glob("*.db"):
        left.unlink()
    os.environ[VARIABLE] = str(directory)
    from infra_service.operations.allocated import install  # noqa: PLC0415 - see above

    install()


def merge_exited_worker(pid: int) -> None:
    """Add the counts of an exited worker to the sums of exited workers.

    Lost counts would make counters decrease. A file per exited process would slow down scrapes with
    each reload.
    """
    from infra_service.operations.allocated import AllocatedDict, forget  # noqa: PLC0415 - see above

    forget(pid)
    directory = Path(os.environ[VARIABLE])
    with _locked(fcntl.LOCK_EX):
        for own in directory.glob(f"*_{pid}.db"):
            path = own.with_name(own.name.replace(f"_{pid}.", f"_{_EXITED}."))
            if not path.exists():  # a rename succeeds even on a full disk
                own.rename(path)
                continue
            total = AllocatedDict(str(path))
            for key, value, _time, _place in AllocatedDict.read_all_values_from_file(str(own)):
                total.write_value(key, total.read_value(key)[0] + value, 0.0)
            total.close()
            own.unlink()


def allocate() -> None:
    """Create the files of this worker. On a full disk, the worker counts in memory."""
    from infra_service.operations.allocated import AllocatedDict  # noqa: PLC0415 - see above

    for kind in _KINDS:
        AllocatedDict(str(Path(os.environ[VARIABLE], f"{kind}_{os.getpid()}.db"))).close()


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Lock the files against merges while they are read."""
    if VARIABLE not in os.environ:  # a process that counts in its own memory
        yield
        return
    with _locked(fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def _locked(how: int) -> Iterator[None]:
    path = Path(os.environ[VARIABLE])
    # An operator may remove the directory. The workers then create their files again.
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(directory, how)
        yield
    finally:
        os.close(directory)
