"""Scenarios in which Patroni, behind haproxy, changes the primary."""

from __future__ import annotations

import signal
from pathlib import Path

from tools.chaos import network
from tools.chaos.cluster import Cluster
from tools.chaos.report import Outcome
from tools.chaos.scenario import Course, course
from tools.chaos.service import serving


def changes_of_primary(directory: Path) -> list[Outcome]:
    """Switch over, kill and isolate the primary, with synchronous replication."""
    cluster = Cluster(directory, is_synchronous=True)
    outcomes = []
    with cluster.up(), serving(directory, DATABASE_URL=cluster.url) as front:
        for name, action in _ACTIONS.items():
            other = "b" if (former := cluster.wait_for_primary()) == "a" else "a"
            cluster.wait_for_replica(other)
            with course(name, front) as this:
                action(this, cluster, former)
                this.wait_for_pushes()
            outcomes.append(this.outcome)
            cluster.members[former].stop()
            network.mend(former)
            cluster.members[former].start()
    return outcomes


def _switch_over(this: Course, cluster: Cluster, former: str) -> None:
    cluster.switch_over()
    cluster.wait_for_primary(other_than=former)
    this.is_back()


def _die(this: Course, cluster: Cluster, former: str) -> None:
    """Kill Patroni and PostgreSQL, like a power failure."""
    member = cluster.members[former]
    member.stop(signal.SIGKILL)
    cluster.kill_postgres(former)
    cluster.wait_for_primary(other_than=former)
    this.is_back()


def _partition(this: Course, cluster: Cluster, former: str) -> None:
    network.cut(former)
    cluster.wait_for_primary(other_than=former)
    this.is_back()


_ACTIONS = {
    "Patroni: switchover behind haproxy": _switch_over,
    "Patroni: the primary is killed": _die,
    "Patroni: the primary is isolated": _partition,
}
