"""The files of the metrics on a full disk: the server counts in memory, and never gets SIGBUS."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from infra_service.operations import allocated, metric_files
from infra_service.operations.allocated import SIZE, AllocatedDict
from tests.support.installation import ROOT
from tests.support.server import LiveServer, live_server
from tests.support.waiting import wait_until

# The file system of 600 KiB has room for the files of a single worker, without growth.
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
"""
# A Python process whose metric files are in a file system with room for two workers.
_PYTHON_WITH_LITTLE_ROOM = """#!/bin/sh
mkdir -p "$VAR_DIR/metrics"
mounted='mount -t tmpfs -o size=2200k none "$VAR_DIR/metrics"'
exec unshare -m sh -c "$mounted"' && exec "$0" "$@"' "{0}" "$@"
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
def test_full_disk_is_reported(directory: Path) -> None:
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", _ON_A_SMALL_DISK, "sh", directory, sys.executable, _WORKER],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip

    assert done.stdout.split() == ["2.0"]


@pytest.mark.skipif(not can_mount(), reason="this user may not mount a file system")
def test_a_worker_that_died_on_a_full_disk_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(_PYTHON_WITH_LITTLE_ROOM.format(sys.executable))
    python.chmod(0o700)
    with contextlib.closing(LiveServer(tmp_path)) as server:
        server.prepare()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", str(python))
            server.start()
        # Only the server sees its mount.
        metrics = Path(f"/proc/{server.pid}/root{tmp_path}/metrics")
        # The server listens as soon as one of its workers has booted.
        wait_until(lambda: len(workers_with_files(server, metrics)) == 2)
        filler = fill(metrics / "filler")
        assert without_file(server) == 0

        first, second = server.workers()
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: len(set(server.workers()) - {first, second}) == 1)
        (replacement,) = set(server.workers()) - {second}
        # The kernel chooses the worker.
        wait_until(lambda: without_file(server) == 1)
        assert all(server.request("GET", "/healthz").status == 200 for _ in range(20))
        assert server.log.read_text().count('"event":"metrics_in_memory"') == 1
        # The counts of the worker that died are kept.
        assert {path.name for path in metrics.glob("counter_*")} == {
            "counter_0.db", f"counter_{second}.db", f"counter_{server.pid}.db",
        }  # fmt: skip

        filler.unlink()
        wait_until(lambda: without_file(server) == 0, 60)
        assert (metrics / f"counter_{replacement}.db").stat().st_size >= SIZE


def fill(path: Path) -> Path:
    """Write until the file system is full."""
    with path.open("wb", 0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    return path


def workers_with_files(server: LiveServer, metrics: Path) -> list[int]:
    """Return the workers that have allocated a file for each type of metric."""
    files = {
        pid: [path for path in metrics.glob(f"*_{pid}.db") if path.stat().st_size >= SIZE]
        for pid in server.workers()
    }
    return [pid for pid, own in files.items() if len(own) == len(metric_files._KINDS)]


def without_file(server: LiveServer) -> int:
    (line,) = [
        line
        for line in server.request("GET", "/metrics").body.decode().splitlines()
        if line.startswith("infra_metrics_processes_without_file ")
    ]
    return int(float(line.split()[1]))


def test_a_file_is_created_as_soon_as_there_is_room(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    path = directory / "counter_1.db"
    with monkeypatch.context() as patch:
        patch.setattr(allocated.os, "posix_fallocate", full)
        figures = AllocatedDict(str(path))
        figures.write_value("series", 1.0, 0.0)
        assert (figures.read_value("series"), path.exists()) == ((0.0, 0.0), False)
        assert allocated.processes_without_file() == 1

    figures.write_value("series", 2.0, 0.0)
    assert not path.exists()  # it is tried every ten seconds
    monkeypatch.setattr(figures, "_retry_at", 0.0)
    figures.write_value("series", 3.0, 0.0)
    assert figures.read_value("series") == (3.0, 0.0)
    assert allocated.processes_without_file() == 0
    figures.close()


def test_missing_directory_is_handled(directory: Path) -> None:
    figures = AllocatedDict(str(directory / "gone" / "counter_1.db"))
    figures.write_value("series", 1.0, 0.0)
    assert allocated.processes_without_file() == 1
    figures.close()
    assert allocated.processes_without_file() == 0


def test_removed_file_is_replaced_with_its_values(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = directory / "counter_1.db"
    figures = AllocatedDict(str(path))
    for number in range(10_000):
        figures.write_value(f"series {number}", float(number), 0.0)
    path.unlink()

    figures.write_value("series 1", 7.0, 0.0)
    assert not path.exists()  # it is checked every ten seconds
    monkeypatch.setattr(figures, "_retry_at", 0.0)
    figures.write_value("series 2", 8.0, 0.0)

    figures.close()
    found = {key: value for key, value, *_ in AllocatedDict.read_all_values_from_file(str(path))}
    assert len(found) == 10_000
    assert (found["series 1"], found["series 2"], found["series 9999"]) == (7.0, 8.0, 9999.0)


def test_counts_are_dropped_without_an_error_on_a_full_disk(
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


def test_a_worker_without_room_starts_and_logs_it_once(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(allocated.os, "posix_fallocate", full)
    monkeypatch.setattr(allocated, "_logged_by", 0)
    with capture_logs() as logged:
        metric_files.allocate()
        metric_files.allocate()

    assert list(directory.iterdir()) == []
    assert [line["event"] for line in logged] == ["metrics_in_memory"]


def test_an_exited_process_is_forgotten(directory: Path) -> None:
    allocated._PID.pack_into(allocated._without_file, allocated._place(4321), 4321)
    metric_files.merge_exited_worker(4321 + allocated._SLOTS)  # of the same place
    assert allocated.processes_without_file() == 1
    metric_files.merge_exited_worker(4321)
    assert allocated.processes_without_file() == 0
