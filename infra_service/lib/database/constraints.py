"""Detect the constraint that a write violates."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from django.db.models import UniqueConstraint

if TYPE_CHECKING:
    from django.db import IntegrityError
    from django.db.models import Model


def breaks(error: IntegrityError, model: type[Model], name: str) -> bool:
    """Return whether the error is a violation of this constraint of the model.

    PostgreSQL reports the constraint's name. SQLite reports the name of a check, and the columns of
    a unique constraint.
    """
    cause = error.__cause__
    if not isinstance(cause, sqlite3.IntegrityError):
        return getattr(getattr(cause, "diag", None), "constraint_name", None) == name
    (constraint,) = (c for c in model._meta.constraints if c.name == name)
    if not isinstance(constraint, UniqueConstraint):
        return str(cause) == f"CHECK constraint failed: {name}"
    columns_of = {field.name: field.column for field in model._meta.concrete_fields}
    table = model._meta.db_table
    columns = ", ".join(f"{table}.{columns_of[name]}" for name in constraint.fields)
    return str(cause) == f"UNIQUE constraint failed: {columns}"
