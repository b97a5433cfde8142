"""Scenarios by name. A scenario receives an empty directory and returns its outcomes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tools.chaos.report import Outcome
from tools.chaos.scenarios import (
    administrator,
    asynchronous,
    disks,
    embedded,
    instances,
    many,
    objects,
    partition,
    patroni,
    pgbouncer,
    redis,
)


class Scenario(NamedTuple):
    """A scenario: the function that returns the outcomes, and the programs that it needs."""

    run: Callable[[Path], list[Outcome]]
    needs: tuple[str, ...]


#: The programs for two instances behind nginx, with PostgreSQL.
_SERVICE = ("ip", "nginx", "setpriv")

SCENARIOS: dict[str, Scenario] = {
    "partition": Scenario(partition.network_partition, _SERVICE),
    "asynchronous": Scenario(asynchronous.lost_lock, _SERVICE),
    "patroni": Scenario(
        patroni.changes_of_primary, (*_SERVICE, "haproxy", "etcd", "patroni", "patronictl")
    ),
    "pgbouncer": Scenario(pgbouncer.in_transaction_mode, (*_SERVICE, "pgbouncer")),
    "disk": Scenario(disks.full_disk_of_postgresql, (*_SERVICE, "mkfs.ext4")),
    "sqlite": Scenario(embedded.disk_lock_and_backup, ("ip", "mkfs.ext4")),
    "objects": Scenario(objects.store_misbehaves, _SERVICE),
    "redis": Scenario(redis.redis_fails, (*_SERVICE, "redis-server")),
    "instances": Scenario(instances.killed_and_restarted, (*_SERVICE, "haproxy")),
    "many": Scenario(many.many_clients, _SERVICE),
    "administrator": Scenario(administrator.administrator_mistakes, _SERVICE),
}
