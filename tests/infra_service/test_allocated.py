"""The files of the metrics on a disk that is full: an error at the start, and never SIGBUS."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra_service.operations import allocated, metric_files
from infra_service.operations.allocated import SIZE, AllocatedDict
from tests.installation import ROOT
from tests.server import live_server

# It runs in a file system of 600 KiB: room for the files of one worker, and for no growth.
_ON_A_SMALL_DISK = """
set -e
mount -t tmpfs -o size=600k none "$1"
exec "$2" -c "$3"
"""
_WORKER = """
import os
from pathlib import Path
from infra_service.operations import metric_files
metric_files.create(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]))
metric_files.allocate()
with open(os.environ["PROMETHEUS_MULTIPROC_DIR"] + "/filler", "wb", 0) as filler:
    try:
        while filler.write(b"x" * 4096):
            pass
    except OSError:
        pass
from prometheus_client import Counter
counter = Counter("pushes", "…", ["name"])
for number in range(10_000):
    counter.labels(f"name {number}").inc()
counter.labels("name 1").inc()
print(counter.labels("name 1")._value.get())
try:
    metric_files.allocate.__globals__["os"].getpid = lambda: 1
    metric_files.allocate()
except OSError as error:
    print(error.errno)
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(metric_files.VARIABLE, str(tmp_path))
    return tmp_path


def can_mount() -> bool:
    command = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not can_mount(), reason="this user may not mount a file system")
def test_a_full_disk(directory: Path) -> None:
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", _ON_A_SMALL_DISK, "sh", directory, sys.executable, _WORKER],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip

    assert done.stdout.split() == ["2.0", str(errno.ENOSPC)]


def test_what_finds_no_room_is_not_counted_and_fails_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    figures = AllocatedDict(str(directory / "counter_1.db"))
    monkeypatch.setattr(allocated.os, "posix_fallocate", full)
    for number in range(10_000):
        figures.write_value(f"series {number}", 1.0, 0.0)

    assert figures.read_value("series 1") == (1.0, 0.0)
    assert figures.read_value("series 9999") == (0.0, 0.0)
    assert (directory / "counter_1.db").stat().st_size == SIZE
    figures.close()


def test_a_file_grows_by_allocated_blocks(directory: Path) -> None:
    figures = AllocatedDict(str(directory / "counter_1.db"))
    for number in range(10_000):
        figures.write_value(f"series {number}", float(number), 0.0)

    assert figures.read_value("series 9999") == (9999.0, 0.0)
    stat = (directory / "counter_1.db").stat()
    assert SIZE < stat.st_size <= stat.st_blocks * 512
    figures.close()
    found = {key: value for key, value, *_ in AllocatedDict.read_all_values_from_file(
        str(directory / "counter_1.db")
    )}  # fmt: skip
    assert found == {f"series {number}": float(number) for number in range(10_000)}


def test_the_servers_files_are_all_allocated() -> None:
    with live_server(WEB_WORKERS="2") as server:
        for _ in range(5):
            assert server.request("GET", "/metrics").status == 200
        files = list((server.directory / "metrics").glob("*.db"))
        kinds = {path.name.split("_")[0] for path in files}
        sizes = [path.stat() for path in files]

    # A type of metric that is new here belongs into metric_files, too.
    assert kinds == set(metric_files._KINDS)
    # Of two workers, and of the process that they are forks of.
    assert len(files) == 3 * len(kinds)
    assert all(SIZE <= stat.st_size <= stat.st_blocks * 512 for stat in sizes)


def test_a_worker_without_room_does_not_start(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(allocated.os, "posix_fallocate", full)

    with pytest.raises(OSError, match="full"):
        metric_files.allocate()
