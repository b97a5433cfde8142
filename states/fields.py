"""A field for the creation time of a state, which adds bounds on the state's id to a query.

Lists are ordered by ``id``, a UUIDv7 with the creation time in milliseconds in its first 48 bits. A
constraint keeps this time within a day of ``created_at``. A bound on ``created_at`` therefore
implies a bound on ``id``. With the bound on ``id``, the database finds the newest states at the end
of the primary key. Without it, the planner could read a million rows first.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.db import models
from django.db.models import lookups

from infra_service.lib.database.months import milliseconds_of

#: After a clock is set back, new ids stay ahead of the clock, but never by a day.
TOLERANCE: Final = dt.timedelta(days=1)
# The constraint rounds, because SQLite's time functions return whole seconds.
_ROUNDED: Final = dt.timedelta(seconds=1)
_LAST: Final = 2**48 - 1


def first_id(moment: dt.datetime) -> uuid.UUID:
    """Return the lowest id of a state created at the moment or later."""
    return uuid.UUID(int=_milliseconds(moment, -TOLERANCE - _ROUNDED) << 80)


def last_id(moment: dt.datetime) -> uuid.UUID:
    """Return the highest id of a state created at the moment or earlier."""
    return uuid.UUID(int=(_milliseconds(moment, TOLERANCE + _ROUNDED) + 1 << 80) - 1)


def _milliseconds(moment: dt.datetime, tolerance: dt.timedelta) -> int:
    since = milliseconds_of(moment) + tolerance // dt.timedelta(milliseconds=1)
    return min(max(since, 0), _LAST)


class CreatedAtField(models.DateTimeField):  # type: ignore[type-arg]  # generic only in stubs
    """The creation time of a row with a UUIDv7 of that time as its ``id``."""

    def implied_by(self, lookup: Any) -> Iterator[lookups.Lookup[Any]]:
        """Yield the bounds on the id that a comparison with ``created_at`` implies.

        Values that only the database can compute yield no bounds. A time that is more precise than
        a microsecond is translated into an empty list, which also yields no bounds.
        """
        times = lookup.rhs if isinstance(lookup.rhs, Sequence) else [lookup.rhs]
        if not times or not all(isinstance(time, dt.datetime) and time.tzinfo for time in times):
            return
        key = self.model._meta.pk.get_col(lookup.lhs.alias)
        if lookup.lookup_name not in ("lt", "lte"):
            yield lookups.GreaterThanOrEqual(key, first_id(min(times)))
        if lookup.lookup_name not in ("gt", "gte"):
            yield lookups.LessThanOrEqual(key, last_id(max(times)))


class IdAt(models.Func):
    """The SQL of ``first_id`` or ``last_id``, for the constraint that guarantees these bounds."""

    output_field = models.UUIDField()

    def __init__(self, moment: Any, *, last: bool, **extra: Any) -> None:
        super().__init__(moment, last=last, **extra)
        shift = TOLERANCE // dt.timedelta(milliseconds=1)
        self.extra |= {"shift": shift if last else -shift, "rest": ("f" if last else "0") * 20}

    template = (
        "(LPAD(TO_HEX((EXTRACT(EPOCH FROM %(expressions)s) * 1000)::BIGINT + %(shift)s), 12, '0')"
        " || '%(rest)s')::UUID"
    )

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Return the SQL for SQLite, which stores ids as 32 hexadecimal digits."""
        # Percent signs are doubled twice: for this template, and for the constraint's parameters.
        template = (
            "(PRINTF('%%%%012x', UNIXEPOCH(%(expressions)s) * 1000 + %(shift)s) || '%(rest)s')"
        )
        return self.as_sql(compiler, connection, template=template, **context)
