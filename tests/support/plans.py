"""PostgreSQL's work for a request: each statement's plan with its own values."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction
from django.db.models import Model


@dataclass
class Plan:
    """A statement's plan, from EXPLAIN (FORMAT JSON)."""

    sql: str
    root: dict[str, Any]
    milliseconds: float | None = None

    def nodes(self) -> list[dict[str, Any]]:
        """Return every node of the plan, from the root down."""
        found, waiting = [], [self.root]
        while waiting:
            node = waiting.pop(0)
            found.append(node)
            waiting += node.get("Plans", [])
        return found

    @property
    def types(self) -> list[str]:
        return [node["Node Type"] for node in self.nodes()]

    @property
    def indexes(self) -> list[str]:
        return [node["Index Name"] for node in self.nodes() if "Index Name" in node]

    @property
    def reads_a_table(self) -> bool:
        """Return whether it scans a table needlessly; a count may scan a small table."""
        return "Seq Scan" in self.types and '"counted"' not in self.sql

    @property
    def rows_read(self) -> int:
        """Return the number of rows read, including those that a filter removed."""
        return self.rows_by_table.total()

    @property
    def rows_by_table(self) -> Counter[str]:
        """Return the number of rows read, by table."""
        rows: Counter[str] = Counter()
        for node in self.nodes():
            if "Relation Name" in node:
                each = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
                rows[node["Relation Name"]] += each * node["Actual Loops"]
        return rows


@dataclass
class Plans:
    """The plans of the statements on one table."""

    table: str
    analyze: bool = False
    found: list[Plan] = field(default_factory=list)

    def __call__(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        if not many and sql.startswith("SELECT") and f'FROM "{self.table}"' in sql:
            options = "ANALYZE, TIMING OFF, FORMAT JSON" if self.analyze else "FORMAT JSON"
            with connection.cursor().cursor as cursor:
                cursor.execute(f"EXPLAIN ({options}) {sql}", params)
                ((answer,),) = cursor.fetchall()
            explained = (json.loads(answer) if isinstance(answer, str) else answer)[0]
            self.found.append(Plan(sql, explained["Plan"], explained.get("Execution Time")))
        return execute(sql, params, many, context)


@contextlib.contextmanager
def plans_of(table: str, *, analyze: bool = False) -> Iterator[list[Plan]]:
    """Collect the plans of the block's reads from the table."""
    plans = Plans(table, analyze)
    with connection.execute_wrapper(plans):
        yield plans.found


def rows_of_a_module(
    blocker: Any, make: Callable[[], object], *models: type[Model]
) -> Iterator[None]:
    """Create rows of these models for all tests of a module, each of which rolls back to them."""
    with blocker.unblock(), transaction.atomic():
        make()
        analyze(*models)
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                # The look-up of a referenced row was planned for a few rows in a single page.
                cursor.execute("DISCARD PLANS")
        # Once here, because otherwise each test would check pending constraints at its end.
        connection.check_constraints()
        yield
        transaction.set_rollback(True)
    # Dead rows are still in the tables, and in the planner's estimates of their size.
    if connection.vendor == "postgresql":
        with blocker.unblock(), connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def analyze(*models: type[Model]) -> None:
    """Update the planner's statistics, and disable sequential scans until the transaction's end.

    A small table is sometimes scanned as fast as an index; that depends on its free space from the
    rows of other tests, and does not hold with a million rows.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
        for model in models:
            cursor.execute(f"ANALYZE {connection.ops.quote_name(model._meta.db_table)}")


@contextlib.contextmanager
def steps_of_sqlite() -> Iterator[list[None]]:
    """Count the steps of SQLite's virtual machine in the block; each row read takes some."""
    steps: list[None] = []
    connection.ensure_connection()
    connection.connection.set_progress_handler(lambda: steps.append(None), 1)
    try:
        yield steps
    finally:
        connection.connection.set_progress_handler(None, 1)
