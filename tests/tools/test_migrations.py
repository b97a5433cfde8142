"""Migrations since the last release: the release before runs on their schema, while they run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

from infra_service.lib.database.under_traffic import (
    AddConstraintUnderTraffic,
    AddIndexUnderTraffic,
)
from tools.upgrades.released import APPS, FILE

#: Of the last release: the last migration of each app, and the columns that its code knows. Written
#: by ``python -m tools.upgrades.released``.
RELEASED: Final = json.loads(FILE.read_text())
#: Tables with few rows, whose locks are short. Any other table may have a million.
SMALL: Final = {"user", "cluster", "auditarchive", "housekeepingpart", "application"}
UNDER_TRAFFIC: Final = (AddIndexUnderTraffic, AddConstraintUnderTraffic)
HARMLESS: Final = (
    migrations.CreateModel,
    migrations.AlterModelManagers,
    migrations.AlterModelOptions,
)
#: Allowed properties of a new column; the columns themselves show the forbidden ones.
HARMLESS_IF_SMALL: Final = (
    migrations.AddConstraint,
    migrations.AddIndex,
    migrations.RemoveIndex,
    migrations.AlterField,
)
HOW = "follow 'Write a migration' in CONTRIBUTING.md"


def new_migrations() -> list[migrations.Migration]:
    """Return our migrations that are not released."""
    graph = MigrationLoader(None).graph
    released = {(app, name) for app, name in RELEASED["migrations"].items()}
    old = {node for leaf in released for node in graph.forwards_plan(leaf)}
    return [
        graph.nodes[node] for node in sorted(graph.nodes) if node[0] in APPS and node not in old
    ]


def risks(migration: Any) -> list[str]:
    """Return the operations of a migration that may break or block the previous release."""
    return [risk for operation in migration.operations if (risk := _risk(operation, migration))]


def _risk(operation: Operation, migration: Any) -> str:
    kind, model = type(operation).__name__, getattr(operation, "model_name", "").lower()
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        found = [_risk(one, migration) for one in operation.database_operations]
        return "; ".join(filter(None, found))
    if isinstance(operation, UNDER_TRAFFIC):
        return f"{kind} in a transaction" if migration.atomic else ""
    if isinstance(operation, migrations.AddField):
        field = operation.field
        is_filled = field.null or field.has_db_default()
        return "" if is_filled else f"{kind} {model}.{operation.name} without db_default"
    harmless = (*HARMLESS, *HARMLESS_IF_SMALL) if model in SMALL else HARMLESS
    return "" if isinstance(operation, harmless) else f"{kind} {model}".strip()


@pytest.mark.parametrize("migration", new_migrations(), ids=str)
def test_each_migration_declares_whether_it_is_safe_while_running(migration: Any) -> None:
    """True, or the reason why the apparent risk is safe; or False, and the how-to names it."""
    declared = getattr(migration, "safe_while_running", None)
    found = risks(migration)

    assert isinstance(declared, (bool, str)), f"{migration} has no safe_while_running; {HOW}"
    if declared is True:
        assert found == [], HOW
    elif declared:
        assert found, f"nothing in {migration} needs a reason"
    else:
        how_to = Path(__file__).parents[2] / "docs" / "how-to" / "upgrade.md"
        assert str(migration) in how_to.read_text()


@pytest.mark.both
@pytest.mark.django_db
@pytest.mark.parametrize("table", RELEASED["columns"])
def test_previous_release_can_read_and_write_its_tables(table: str) -> None:
    known, columns = RELEASED["columns"][table], _columns(table)

    assert set(known) <= set(columns), HOW
    demanded = {name for name, is_demanded in columns.items() if is_demanded}
    assert {name for name in demanded if known.get(name) != "filled"} == set(), HOW


def _columns(table: str) -> dict[str, bool]:
    """Return the table's columns, and of each whether an insert must name it.

    Django's own reader of SQLite's tables stumbles over our constraints.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"PRAGMA table_info({table})")
            rows = [(name, bool(notnull), default) for _, name, _, notnull, default, _ in cursor]
        else:
            cursor.execute(
                "SELECT column_name, is_nullable = 'NO', "
                "coalesce(column_default, identity_generation) FROM information_schema.columns "
                "WHERE table_schema = current_schema() AND table_name = %s",
                [table],
            )
            rows = cursor.fetchall()
    return {name: not_null and default is None for name, not_null, default in rows}


def migration_of(*operations: Operation, **given: Any) -> Any:
    return type("Migration", (), {"atomic": True, "operations": operations, **given})


_INDEX = models.Index(fields=["serial"], name="by_serial")
_TEXT = models.CharField(max_length=10, default="")
DANGEROUS: Final[dict[str, Operation]] = {
    "RemoveField state": migrations.RemoveField("state", "serial"),
    "RenameField state": migrations.RenameField("state", "serial", "number"),
    "AlterField state": migrations.AlterField("state", "serial", models.TextField()),
    "DeleteModel": migrations.DeleteModel("State"),
    "RenameModel": migrations.RenameModel("State", "Other"),
    "AddField state.text without db_default": migrations.AddField("state", "text", _TEXT),
    "AddIndex state": migrations.AddIndex("state", _INDEX),
    "AddIndexUnderTraffic in a transaction": AddIndexUnderTraffic("state", _INDEX),
    "RunPython": migrations.RunPython(migrations.RunPython.noop),
    "RunSQL": migrations.RunSQL("SELECT 1"),
    "RemoveField cluster": migrations.SeparateDatabaseAndState(
        database_operations=[migrations.RemoveField("cluster", "name")]
    ),
}


@pytest.mark.parametrize("risk", DANGEROUS)
def test_risky_operations_are_found(risk: str) -> None:
    assert risks(migration_of(DANGEROUS[risk])) == [risk]


def test_safe_operations_are_accepted() -> None:
    safe = (
        migrations.AddField("state", "text", models.TextField(null=True)),
        migrations.AddField("state", "text", models.TextField(db_default="")),
        migrations.AddIndex("cluster", _INDEX),
    )

    assert risks(migration_of(*safe)) == []
    assert risks(migration_of(AddIndexUnderTraffic("state", _INDEX), atomic=False)) == []
