"""Instances of the service are killed, restarted in turn, or cut off with their host."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tools.chaos import network
from tools.chaos.databases import Postgres
from tools.chaos.report import Outcome
from tools.chaos.scenario import Course, course
from tools.chaos.service import serving

if TYPE_CHECKING:
    from collections.abc import Collection

_KILLS = 4
_ROUNDS = 3
_PROXIES = ("nginx", "haproxy")
#: Seconds of the isolation of a host: longer than the proxies' timeout.
_AWAY = 45
#: The maximum duration of a request: the proxy waits for the lost host, then repeats the request.
_SLOWEST = 40


def killed_and_restarted(directory: Path) -> list[Outcome]:
    """Clients use a proxy, which forwards requests from an unavailable instance to the other."""
    database = Postgres(directory, "b")
    try:
        database.create()
        database.start()
        return [outcome for proxy in _PROXIES for outcome in _behind(proxy, directory, database)]
    finally:
        network.mend("a")
        database.stop()


def _behind(proxy: str, directory: Path, database: Postgres) -> list[Outcome]:
    home = directory / proxy
    home.mkdir()
    database.run_sql(f"CREATE DATABASE {proxy}")
    url = database.url.removesuffix("/postgres") + f"/{proxy}"
    with serving(home, proxy=proxy, hosts=("a", "lab"), DATABASE_URL=url) as front:
        with course(
            f"{proxy}: instances killed at random, 4 times", front, probing=False
        ) as killed:
            _kill(killed)
            killed.is_back()
            killed.wait_for_pushes()
        name = f"{proxy}: rolling restart of both, {_ROUNDS} times"
        with course(name, front, probing=False) as restarted:
            _restart(restarted)
            restarted.is_back()
            restarted.wait_for_pushes()
        name = f"{proxy}: the host of one instance is cut off for {_AWAY} s"
        with course(name, front, probing=False) as cut_off:
            _cut_off(cut_off)
    # A partial response breaks off with its host; no proxy can repeat it.
    broken_off = (0, "(no answer: IncompleteRead)")
    return [
        killed.outcome,
        _answered_by_the_service(restarted),
        _answered_by_the_service(cut_off, allowed=[broken_off]),
    ]


def _answered_by_the_service(this: Course, allowed: Collection[tuple[int, str]] = ()) -> Outcome:
    """Return the outcome; the proxy must not have answered itself, nor a client waited long."""
    bad = [
        key for key in this.outcome.reasons if key[0] in (0, 502, 503, 504) and key not in allowed
    ]
    this.outcome.broken += [f"a client saw {status} {why}" for status, why in bad]
    if this.traffic.history.slowest > _SLOWEST:
        this.outcome.broken.append(f"a request took {this.traffic.history.slowest:.0f} s")
    return this.outcome


def _kill(this: Course) -> None:
    """Kill all processes of an instance each time, like a power cut."""
    for _ in range(_KILLS):
        instance = random.choice(this.front.instances)
        time.sleep(random.uniform(0.5, 2))
        instance.kill()
        time.sleep(random.uniform(0, 1))
        instance.start()


def _restart(this: Course) -> None:
    """Restart the instances in turn, waiting only for ``/readyz`` in between."""
    for _ in range(_ROUNDS):
        for instance in this.front.instances:
            this.outcome.figures["exit code"] = instance.stop()
            instance.start()


def _cut_off(this: Course) -> None:
    """Isolate an instance: the other continues, and the first resumes its pending work."""
    network.cut("a")
    started = time.monotonic()
    this.wait_for_pushes(more=5)
    this.outcome.figures["each state pushed 5 times after"] = f"{time.monotonic() - started:.1f} s"
    time.sleep(max(0.0, started + _AWAY - time.monotonic()))
    network.mend("a")
    this.is_back()
    this.wait_for_pushes()
