"""Months of UUIDv7 ids, which begin with their time in milliseconds (RFC 9562)."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Final

# An id and the time in its row are taken one after the other.
_APART: Final = dt.timedelta(hours=1)
_EARLIEST: Final = dt.datetime(1970, 1, 2, tzinfo=dt.UTC)
_LATEST: Final = dt.datetime(9998, 1, 1, tzinfo=dt.UTC)


def month_of(moment: dt.datetime, *, later: int = 0) -> dt.datetime:
    """Return the beginning of the month of the moment, or of a later one, in UTC."""
    utc = moment.astimezone(dt.UTC)
    number = utc.year * 12 + utc.month - 1 + later
    return dt.datetime(number // 12, number % 12 + 1, 1, tzinfo=dt.UTC)


def first_id(moment: dt.datetime) -> uuid.UUID:
    """Return the smallest UUIDv7 of the moment's millisecond."""
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80)


def moment_of(id_: uuid.UUID) -> dt.datetime:
    """Return the time of a UUIDv7; a limit of about the year 9998 for later times."""
    seconds = min((id_.int >> 80) / 1000, _LATEST.timestamp())
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


def lowest_id(since: dt.datetime) -> uuid.UUID:
    """Return a limit below the ids of rows since that time: the beginning of a month."""
    return first_id(month_of(_valid(since) - _APART))


def highest_id(until: dt.datetime) -> uuid.UUID:
    """Return a limit above the ids of rows until that time: the beginning of a month."""
    return first_id(month_of(_valid(until) + _APART, later=1))


def _valid(moment: dt.datetime) -> dt.datetime:
    return min(max(moment, _EARLIEST), _LATEST)
