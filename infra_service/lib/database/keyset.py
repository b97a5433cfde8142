"""Positions in an ordered list: the position of a row, and the condition for later rows.

A key is a tuple of columns that are unique together and indexed, all ascending or all descending
(``("-id",)``).
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db.models import F
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan, TupleLessThan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet


def columns_of(key: Sequence[str]) -> tuple[list[str], bool]:
    """Return the columns of a key, and whether its order is descending."""
    return [name.removeprefix("-") for name in key], key[0].startswith("-")


def reversed_key(key: Sequence[str]) -> list[str]:
    """Return the key for the opposite order."""
    return [name[1:] if name.startswith("-") else f"-{name}" for name in key]


def position_of(row: Any, columns: Sequence[str]) -> list[int | str]:
    """Return a row's position as JSON values.

    The row is an instance, a dictionary, or a tuple that begins with the columns.
    """
    if isinstance(row, tuple):
        values: Sequence[Any] = row[: len(columns)]
    else:
        values = [row[name] if isinstance(row, dict) else getattr(row, name) for name in columns]
    return [v if isinstance(v, int | str) else str(v) for v in values]


def beyond(key: Sequence[str], position: Sequence[Any], queryset: QuerySet[Any, Any]) -> Any:
    """Return the condition for the rows after the position, in the order of the key.

    Raises:
        ValidationError: a value is invalid for its column.
    """
    columns, descending = columns_of(key)
    values = [
        converted(queryset.model._meta.get_field(name), value)
        for name, value in zip(columns, position, strict=True)
    ]
    # An index serves a row comparison. The usual OR of ANDs would read all preceding rows.
    compare = TupleLessThan if descending else TupleGreaterThan
    return compare(Tuple(*map(F, columns)), tuple(values))


def converted(field: Any, value: Any) -> Any:
    """Convert a value of a position to the type of its column.

    Raises:
        ValidationError: the value is invalid for the column.
    """
    try:
        found = field.to_python(value)
        return found.astimezone(dt.UTC) if isinstance(found, dt.datetime) else found
    except (TypeError, ValueError, OverflowError) as error:  # a number instead of a time
        raise ValidationError("not a value of the column") from error
