"""Scenarios in which instances are killed, restarted one by one, or isolated with their host."""

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
#: The seconds for which a host is isolated, which exceed the timeout of the proxies.
_AWAY = 45
#: The maximum seconds of a request: the proxy waits for the lost host, and then repeats the
#: request.
_SLOWEST = 40


def killed_and_restarted(directory: Path) -> list[Outcome]:
    """Inject the faults behind each proxy, which must use the available instance."""
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
        name = f"{proxy}: the host of one instance is isolated for {_AWAY} s"
        with course(name, front, probing=False) as cut_off:
            _cut_off(cut_off)
    # A response may be cut off when its host is isolated. A proxy cannot repeat a partial response.
    broken_off = (0, "(no answer: IncompleteRead)")
    return [
        killed.outcome,
        _answered_by_the_service(restarted),
        _answered_by_the_service(cut_off, allowed=[broken_off]),
    ]


def _answered_by_the_service(this: Course, allowed: Collection[tuple[int, str]] = ()) -> Outcome:
    """Return the outcome. Errors from the proxy and long waits are broken promises."""
    bad = [
        key for key in this.outcome.reasons if key[0] in (0, 502, 503, 504) and key not in allowed
    ]
    this.outcome.broken += [f"a client received {status} {why}" for status, why in bad]
    if this.traffic.history.slowest > _SLOWEST:
        this.outcome.broken.append(f"a request took {this.traffic.history.slowest:.0f} s")
    return this.outcome


def _kill(this: Course) -> None:
    """Repeatedly kill all processes of an instance, like a power failure."""
    for _ in range(_KILLS):
        instance = random.choice(this.front.instances)
        time.sleep(random.uniform(0.5, 2))
        instance.kill()
        time.sleep(random.uniform(0, 1))
        instance.start()


def _restart(this: Course) -> None:
    """Restart one instance after the other, waiting only for ``/readyz`` in between."""
    for _ in range(_ROUNDS):
        for instance in this.front.instances:
            this.outcome.figures["exit code"] = instance.stop()
            instance.start()


def _cut_off(this: Course) -> None:
    """Isolate an instance, which later resumes its pending work. The other instance continues."""
    network.cut("a")
    started = time.monotonic()
    this.wait_for_pushes(more=5)
    this.outcome.figures["5 pushes of each state after"] = f"{time.monotonic() - started:.1f} s"
    time.sleep(max(0.0, started + _AWAY - time.monotonic()))
    network.mend("a")
    this.is_back()
    this.wait_for_pushes()
