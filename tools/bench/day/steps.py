"""The steps of the test: the load of a company with a number of teams, and its results."""

from __future__ import annotations

import queue
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.installation import ROOT
from tests.support.waiting import MAX_WAIT
from tools.bench.day import proportions
from tools.bench.day.company import Arrival, Company
from tools.bench.day.resources import Resources, memory, settle

_THREADS = 64
#: The number of steps between the last good step and the first overload.
_NARROWING = 2


@dataclass(frozen=True)
class Step:
    """The results of a step: sorted milliseconds per kind of request, and resources used."""

    teams: int
    clusters: int
    workloads: int
    states: int
    milliseconds: dict[str, list[float]]
    wrong: dict[str, int]
    used: Resources
    memory: tuple[int, int]

    @property
    def problems(self) -> list[str]:
        """Return the reasons why the service cannot serve this company."""
        slow = [
            f"99th percentile of {kind}: {self.percentile(kind, 0.99):.0f} ms"
            for kind in self.milliseconds
            if self.percentile(kind, 0.99) > limit_of(kind)
        ]
        return slow + [f"{count} times {text}" for text, count in self.wrong.items()]

    @property
    def requests_per_second(self) -> float:
        return sum(map(len, self.milliseconds.values())) / self.used.moment

    def percentile(self, kind: str, share: float) -> float:
        found = self.milliseconds[kind]
        return found[min(int(len(found) * share), len(found) - 1)]


def limit_of(kind: str) -> int:
    if kind == "snapshot":
        return proportions.MOST_MILLISECONDS_OF_A_SNAPSHOT
    return proportions.MOST_MILLISECONDS


def take(company: Company, teams: int, seconds: float, commands: tuple[int, ...]) -> Step:
    """Send the load of ``teams`` teams, and return the results."""
    company.grow_to(teams)
    settle(company.server)
    company.milliseconds.clear()
    company.wrong.clear()
    before = Resources.used(company.server, commands)
    housekeeping = subprocess.Popen(
        [sys.executable, "manage.py", "housekeeping"],
        cwd=ROOT, env=company.server.environment, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    send(company, company.arrivals(seconds, random.Random(teams)))
    used = Resources.used(company.server, (*commands, housekeeping.pid)).since(before)
    assert housekeeping.wait(MAX_WAIT) == 0
    return Step(
        teams=teams,
        clusters=len(company.clusters),
        workloads=sum(cluster.size for cluster in company.clusters),
        states=len(company.states),
        milliseconds={kind: sorted(found) for kind, found in company.milliseconds.items()},
        wrong=dict(company.wrong),
        used=used,
        memory=memory(company.server),
    )


def send(company: Company, arrivals: list[Arrival]) -> None:
    """Start the work of each arrival at its time, and wait until all work has ended."""
    waiting: queue.SimpleQueue[Arrival | None] = queue.SimpleQueue()

    def work() -> None:
        while (arrival := waiting.get()) is not None:
            company.run(arrival[1], arrival[0])

    threads = [threading.Thread(target=work) for _ in range(_THREADS)]
    for thread in threads:
        thread.start()
    start = time.monotonic()
    for moment, label in arrivals:
        time.sleep(max(0.0, start + moment - time.monotonic()))
        waiting.put((start + moment, label))
    for _ in threads:
        waiting.put(None)
    for thread in threads:
        thread.join()


def capacity(
    company: Company,
    first: int,
    seconds: float,
    commands: tuple[int, ...],
    show: Callable[[Step], None],
) -> list[Step]:
    """Double the teams until the service is overloaded, narrow down, and return all steps."""
    steps, good, teams = [], 0, first
    while True:
        steps.append(take(company, teams, seconds, commands))
        show(steps[-1])
        if steps[-1].problems:
            break
        good, teams = teams, teams * 2
    bad = teams
    for _ in range(_NARROWING):
        company.shrink_to(good)
        middle = (good + bad) // 2
        if middle in (good, bad):
            break
        steps.append(take(company, middle, seconds, commands))
        show(steps[-1])
        good, bad = (good, middle) if steps[-1].problems else (middle, bad)
    return sorted(steps, key=lambda step: step.teams)
