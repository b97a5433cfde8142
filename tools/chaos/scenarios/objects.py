"""A scenario in which the object store returns errors or wrong data, or does not respond."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path

from tests.e2e import object_store
from tests.e2e.object_store import Line
from tools.chaos.databases import Postgres
from tools.chaos.report import Outcome
from tools.chaos.scenario import course
from tools.chaos.service import serving

_FAULTS = ("missing", "altered", "after", "silence")


def store_misbehaves(directory: Path) -> list[Outcome]:
    """Inject each fault four times briefly, and then for four seconds, under traffic."""
    database = Postgres(directory, "a")
    outcomes = []
    try:
        database.create()
        database.start()
        with object_store.running() as port, closing(Line(port)) as line:
            settings = {"DATABASE_URL": database.url, "STATE_STORAGE_URL": line.url}
            with serving(directory, **settings) as front:
                for fault in _FAULTS:
                    with course(f"object store: {fault}", front) as this:
                        with this.reading():
                            for seconds in (*[0.3] * 4, 4):
                                line.fault = fault
                                time.sleep(seconds)
                                line.fault = ""
                                time.sleep(0.5)
                        this.is_back()
                        this.wait_for_pushes()
                    outcomes.append(this.outcome)
                found = json.loads(front.manage("verify_states", "--json"))
                this.outcome.figures["documents verified"] = found["checked"]
                this.outcome.broken += [str(problem) for problem in found["problems"]]
    finally:
        database.stop()
    return outcomes
