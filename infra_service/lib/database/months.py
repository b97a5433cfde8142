"""Convert between times or months and UUIDv7 ids, which begin with a time in ms (RFC 9562)."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Final

_UNIX: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# The maximum difference between the time in an id and the time in its row.
_APART: Final = dt.timedelta(hours=1)
_EARLIEST: Final = dt.datetime(1970, 1, 2, tzinfo=dt.UTC)
_LATEST: Final = dt.datetime(9998, 1, 1, tzinfo=dt.UTC)


def milliseconds_of(moment: dt.datetime) -> int:
    """Return the first 48 bits of a UUIDv7 for a time."""
    return (moment - _UNIX) // dt.timedelta(milliseconds=1)


def month_of(moment: dt.datetime, *, later: int = 0) -> dt.datetime:
    """Return the beginning of the month of a time, or of a ``later`` month, in UTC."""
    utc = moment.astimezone(dt.UTC)
    number = utc.year * 12 + utc.month - 1 + later
    return dt.datetime(number // 12, number % 12 + 1, 1, tzinfo=dt.UTC)


def first_id(moment: dt.datetime) -> uuid.UUID:
    """Return the lower bound of the UUIDv7 ids in the millisecond of a time."""
    return uuid.UUID(int=max(milliseconds_of(moment), 0) << 80)


def moment_of(id_: uuid.UUID) -> dt.datetime:
    """Return the time of a UUIDv7, limited to the beginning of the year 9998."""
    seconds = min((id_.int >> 80) / 1000, _LATEST.timestamp())
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


def lowest_id(since: dt.datetime) -> uuid.UUID:
    """Return a lower limit for the ids of rows since a time: the first id of a month."""
    return first_id(month_of(_valid(since) - _APART))


def highest_id(until: dt.datetime) -> uuid.UUID:
    """Return an upper limit for the ids of rows until a time: the first id of a later month."""
    return first_id(month_of(_valid(until) + _APART, later=1))


def _valid(moment: dt.datetime) -> dt.datetime:
    return min(max(moment, _EARLIEST), _LATEST)
