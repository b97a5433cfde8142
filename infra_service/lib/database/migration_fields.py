"""Shared parts of migrations: keys, and text columns compared in byte order.

Applied migrations import this module, so a change here changes the schema of new databases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

from infra_service.lib.uuids import uuid7

if TYPE_CHECKING:
    from collections.abc import Mapping


def uuid7_id() -> tuple[str, models.Field[Any, Any]]:
    """Return the field ``id`` of a model with a UUIDv7 as the primary key."""
    return "id", models.UUIDField(default=uuid7, editable=False, primary_key=True, serialize=False)


def composite_key(*columns: str) -> tuple[str, models.Field[Any, Any]]:
    """Return the field ``pk`` of a model with a composite primary key."""
    return "pk", models.CompositePrimaryKey(
        *columns, blank=True, editable=False, primary_key=True, serialize=False
    )


def unindexed_key(
    name: str, to: str, on_delete: Any, **options: Any
) -> tuple[str, models.Field[Any, Any]]:
    """Return a foreign key without a separate index."""
    return name, models.ForeignKey(to, on_delete, db_index=False, **options)


def optional_text(name: str, max_length: int) -> tuple[str, models.Field[Any, Any]]:
    """Return a text field with the database default "", for older code without the field."""
    return name, models.CharField(blank=True, db_default="", default="", max_length=max_length)


def compare_bytes(schema_editor: Any, table: str, columns: Mapping[str, int]) -> None:
    """Change text columns to byte order on PostgreSQL, as on SQLite.

    An index then also serves prefixes, and the order does not depend on the server's locale or the
    version of its libraries. ``columns`` maps each column to its maximum length.
    """
    if schema_editor.connection.vendor == "postgresql":
        changes = ", ".join(
            f'ALTER COLUMN "{name}" TYPE varchar({length}) COLLATE "C"'
            for name, length in columns.items()
        )
        schema_editor.execute(f"ALTER TABLE {table} {changes}")
