"""What can happen, by name. A scenario gets an empty directory, and returns what came of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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

Scenario = Callable[[Path], list[Outcome]]

SCENARIOS: dict[str, Scenario] = {
    "partition": partition.network_partition,
    "asynchronous": asynchronous.lost_lock,
    "patroni": patroni.changes_of_primary,
    "pgbouncer": pgbouncer.in_transaction_mode,
    "disk": disks.full_disk_of_postgresql,
    "sqlite": embedded.disk_lock_and_backup,
    "objects": objects.store_misbehaves,
    "redis": redis.redis_fails,
    "instances": instances.killed_and_restarted,
    "many": many.many_clients,
    "administrator": administrator.administrators_deeds,
}
