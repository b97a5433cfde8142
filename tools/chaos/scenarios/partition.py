"""A scenario in which the primary's host is isolated, and the standby is promoted manually."""

from __future__ import annotations

import time
from pathlib import Path

from tests.support.waiting import wait_until
from tools.chaos import network
from tools.chaos.databases import Postgres
from tools.chaos.report import Outcome
from tools.chaos.scenario import course
from tools.chaos.service import serving

#: The seconds until a monitor would declare the primary lost.
_DECISION = 6


def network_partition(directory: Path) -> list[Outcome]:
    """Isolate the primary and promote its synchronous standby. ``DATABASE_URL`` names both."""
    primary, standby = Postgres(directory, "a"), Postgres(directory, "b")
    try:
        primary.create()
        primary.start()
        standby.follow(primary)
        standby.start()
        primary.run_sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.run_sql("SELECT pg_reload_conf()")
        url = f"postgres://postgres@{primary.address},{standby.address}/postgres"
        with serving(directory, DATABASE_URL=url + "?target_session_attrs=read-write") as front:
            with course("network partition, standby promoted after 6 s", front) as this:
                network.cut("a")
                time.sleep(_DECISION)
                standby.promote()
                this.is_back()
                this.wait_for_pushes()
                steady = time.monotonic() - this.back
                this.outcome.figures["a push of each state after"] = f"{steady:.1f} s"
            network.mend("a")
            if this.outcome.back_after is None or this.outcome.back_after > 10:
                this.outcome.broken.append("no acknowledged push within 10 s of the promotion")
            wait_until(lambda: front.request("GET", "/readyz").status == 200)
            return [this.outcome]
    finally:
        network.mend("a")
        standby.stop()
        primary.stop()
