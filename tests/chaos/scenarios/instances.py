"""Instances of the service are killed, or restarted one after the other."""

from __future__ import annotations

import random
import time
from pathlib import Path

from tests.chaos.databases import Postgres
from tests.chaos.report import Outcome
from tests.chaos.scenario import Course, course
from tests.chaos.service import serving

_KILLS = 4
_ROUNDS = 1


def killed_and_restarted(directory: Path) -> list[Outcome]:
    """Clients come through nginx, which passes what the one does not take to the other."""
    database = Postgres(directory, "a")
    outcomes = []
    try:
        database.create()
        database.start()
        with serving(directory, DATABASE_URL=database.url) as front:
            with course("instances killed at random, 4 times", front, probing=False) as this:
                _kill(this)
                this.is_back()
                this.wait_for_pushes()
            outcomes.append(this.outcome)
            with course("rolling restart of both", front, probing=False) as this:
                _restart(this)
                this.is_back()
                this.wait_for_pushes()
            bad = [key for key in this.outcome.reasons if key[0] in (0, 502, 503, 504)]
            this.outcome.broken += [f"a client saw {status} {why}" for status, why in bad]
            outcomes.append(this.outcome)
    finally:
        database.stop()
    return outcomes


def _kill(this: Course) -> None:
    """Each time all processes of one of them, as a power cut does."""
    for _ in range(_KILLS):
        instance = random.choice(this.front.instances)
        time.sleep(random.uniform(0.5, 2))
        instance.kill()
        time.sleep(random.uniform(0, 1))
        instance.start()


def _restart(this: Course) -> None:
    for _ in range(_ROUNDS):
        for instance in this.front.instances:
            this.outcome.figures["exit code"] = instance.stop()
            instance.start()
            this.wait_for_pushes()
