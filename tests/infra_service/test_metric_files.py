"""The counts of finished worker processes."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from infra_service.operations import metric_files

# A worker that counts and exits.
_WORKER = """
import os
from prometheus_client import Counter, Histogram
counter = Counter("pushes", "…", ["result"])
counter.labels("stored").inc(3)
Histogram("seconds", "…", buckets=(1, 5)).observe(2)
print(os.getpid())
"""
_TOLD = """
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
registry = CollectorRegistry()
MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "var" / "metrics"
    monkeypatch.setenv(metric_files.VARIABLE, str(directory))
    metric_files.create(directory)
    return directory


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def test_counts_stay_and_files_do_not(directory: Path) -> None:
    for _ in range(3):
        pid = int(run(_WORKER))
        assert sorted(p.name for p in directory.iterdir() if str(pid) in p.name) == [
            f"counter_{pid}.db", f"histogram_{pid}.db",
        ]  # fmt: skip
        metric_files.merge_exited_worker(pid)

    assert sorted(p.name for p in directory.iterdir()) == ["counter_0.db", "histogram_0.db"]
    output = run(_TOLD)
    assert 'pushes_total{result="stored"} 9.0\n' in output
    assert 'seconds_bucket{le="1.0"} 0.0\n' in output
    assert 'seconds_bucket{le="5.0"} 3.0\n' in output
    assert "seconds_count 3.0\n" in output
    assert "seconds_sum 6.0\n" in output


def test_worker_without_counts_leaves_no_file(directory: Path) -> None:
    metric_files.merge_exited_worker(12345)

    assert list(directory.iterdir()) == []


def test_each_start_counts_from_zero(directory: Path) -> None:
    run(_WORKER)
    (directory / "notes.txt").write_text("not ours")

    metric_files.create(directory)

    assert [p.name for p in directory.iterdir()] == ["notes.txt"]
    assert directory.stat().st_mode & 0o777 == 0o700


def test_files_are_not_merged_during_a_read(directory: Path) -> None:
    pid = int(run(_WORKER))
    burying = threading.Thread(target=metric_files.merge_exited_worker, args=(pid,))

    with metric_files.reading():
        burying.start()
        burying.join(0.3)
        assert (directory / f"counter_{pid}.db").exists()

    burying.join(30)
    assert [p.name for p in directory.glob("counter_*")] == ["counter_0.db"]
