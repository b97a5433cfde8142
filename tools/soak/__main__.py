"""``make soak``: run the service under steady traffic for an hour, and check for growth.

``SOAK_SECONDS`` changes the duration, and ``SOAK_RATE`` the requests per second of all eight
clients together. The service uses PostgreSQL. The exit status is 0 if each of these statements
holds:

- Each request got the status 200.
- No worker process ended.
- Each worker used at most 10 % more memory after 100,000 requests than after 10,000.
- The database and the tables of versions and audit events grew by at most 25 % in the second half.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator

from tests.support.server import LiveServer, live_server
from tools.soak.clients import CLIENTS, PUSHED, Clients, Seen
from tools.soak.measures import Sample, costs_of_a_push, make_events_older, memory_after, sample

_SECONDS = float(os.environ.get("SOAK_SECONDS", "3600"))
_RATE = float(os.environ.get("SOAK_RATE", "60"))
_EVERY = 10
_HOUSEKEEPINGS = 6
_KEPT = 100
_FEW, _MANY = 10_000, 100_000
_MEMORY_GROWTH, _SIZE_GROWTH = 1.1, 1.25


def main() -> int:
    """Run the test, print the measurements, and return 0 if there was no problem."""
    kept = {"STATE_VERSIONS_KEPT": str(_KEPT), "STATE_VERSIONS_DAYS": "0"}
    with live_server(**kept, AUDIT_EVENTS_KEPT_DAYS="2", RATE_LIMIT_TOKEN="0") as server:
        archives = server.directory / "archives"
        archives.mkdir()
        server.environment["AUDIT_ARCHIVE_DIR"] = str(archives)
        costs = costs_of_a_push(server, PUSHED)
        print(f"one push of {PUSHED:,} bytes: {_summary(costs)}", flush=True)
        samples: list[Sample] = []
        removed: list[str] = []
        with Clients(server, _RATE).at_work() as seen:
            samples.extend(_course(server, removed))
    problems = [*_problems(samples), *(f"{n} times {label}" for label, n in seen.wrong.items())]
    _report(samples, seen)
    print("\n".join(removed))
    print("\n".join(f"BROKEN {problem}" for problem in problems))
    return int(bool(problems))


def _course(server: LiveServer, removed: list[str]) -> Iterator[Sample]:
    """Yield samples while the clients run, and run housekeeping six times."""
    start = time.monotonic()
    housekeepings = 0
    while (passed := time.monotonic() - start) < _SECONDS:
        if passed > (housekeepings + 1) * _SECONDS / (_HOUSEKEEPINGS + 0.5):
            housekeepings += 1
            removed.append(_run_housekeeping(server))
        one = sample(server)
        print(f"{passed:5.0f} s {_line(one)}", flush=True)
        yield one
        time.sleep(_EVERY)


def _run_housekeeping(server: LiveServer) -> str:
    make_events_older(server)
    found = json.loads(server.manage("housekeeping", "--json"))
    output = {part: (one["status"], one["removed"]) for part, one in found.items()}
    return f"housekeeping: {output}"


def _line(one: Sample) -> str:
    workers = "; ".join(
        f"{w.requests} requests, {w.kilobytes} KB, {w.descriptors} files"
        for w in one.workers.values()
    )
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"[{workers}] {_summary(one.figures)}, load {load}"


def _summary(figures: dict[str, int]) -> str:
    return ", ".join(f"{name} {value:,}" for name, value in figures.items())


def _problems(samples: list[Sample]) -> list[str]:
    problems = []
    if len({frozenset(one.workers) for one in samples}) > 1:
        problems.append("a worker ended")
    for pid in samples[0].workers:
        few, many = memory_after(samples, pid, _FEW), memory_after(samples, pid, _MANY)
        print(f"memory of a worker: {few} KB after {_FEW:,} requests, {many} KB after {_MANY:,}")
        if few and many and many > few * _MEMORY_GROWTH:
            problems.append("the memory of a worker grew by more than 10 %")
    half, last = samples[len(samples) // 2].figures, samples[-1].figures
    problems += [
        f"{name} grew from {half[name]} at half-time to {last[name]}"
        for name in ("database_bytes", "version_bytes", "event_bytes")
        if last[name] > half[name] * _SIZE_GROWTH
    ]
    return problems


def _report(samples: list[Sample], seen: Seen) -> None:
    start, end = samples[0].moment, samples[-1].moment
    tenth = (end - start) / 10
    total = sum(seen.statuses.values())
    print(f"{total:,} requests by {CLIENTS} clients in {end - start:.0f} s: {dict(seen.statuses)}")
    for kind in seen.taken:
        first = seen.milliseconds(kind, start, start + tenth)
        last = seen.milliseconds(kind, end - tenth, end)
        print(
            f"{kind}: p50 {first[0]:.1f} ms, p99 {first[1]:.1f} ms in the first tenth; "
            f"p50 {last[0]:.1f} ms, p99 {last[1]:.1f} ms in the last"
        )
    for name in samples[0].figures:
        print(f"{name}: {_extent([one.figures[name] for one in samples])}")
    for pid in samples[0].workers:
        files = [one.workers[pid].descriptors for one in samples if pid in one.workers]
        print(f"descriptors of a worker: {_extent(files)}")


def _extent(values: list[int]) -> str:
    return f"{values[0]:,} at the start, {values[-1]:,} at the end, maximum {max(values):,}"


if __name__ == "__main__":
    sys.exit(main())
