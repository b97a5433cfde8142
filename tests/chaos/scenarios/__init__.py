"""What can happen, by name. A scenario gets an empty directory, and returns what came of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.chaos.report import Outcome
from tests.chaos.scenarios import administrator, partition, patroni, pgbouncer

Scenario = Callable[[Path], list[Outcome]]

SCENARIOS: dict[str, Scenario] = {
    "partition": partition.network_partition,
    "patroni": patroni.changes_of_primary,
    "pgbouncer": pgbouncer.in_transaction_mode,
    "administrator": administrator.administrators_deeds,
}
