"""Identifiers: those that a person can tell apart, and UUIDs as the API writes them."""

import datetime as dt
import re
import uuid
from typing import Final

from uuid_utils.compat import uuid7

_CANONICAL_UUID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_LENGTH: Final = 25  # 36 ** 25 > 2 ** 128, so that every identifier has the same length and sorts


_UNIX: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def uuid7_of(moment: dt.datetime) -> uuid.UUID:
    """Return a new UUIDv7 of that moment, to the millisecond."""
    return uuid7(nanoseconds=(moment - _UNIX) // dt.timedelta(milliseconds=1) * 1_000_000)


def _base36_uuid7(moment: dt.datetime | None) -> str:
    number = (uuid7() if moment is None else uuid7_of(moment)).int
    digits = []
    for _ in range(_LENGTH):
        number, remainder = divmod(number, 36)
        digits.append(_DIGITS[remainder])
    return "".join(reversed(digits))


def parse_uuid(text: str) -> uuid.UUID | None:
    """Return the UUID that is written in the canonical 8-4-4-4-12 form, in any case."""
    return uuid.UUID(text) if _CANONICAL_UUID.fullmatch(text) else None


def api_key_id(moment: dt.datetime | None = None) -> str:
    """Return a new API key id, ``^key-[0-9a-z]+$``; later ids sort after earlier ones."""
    return f"key-{_base36_uuid7(moment)}"


def access_token_id(moment: dt.datetime | None = None) -> str:
    """Return a new access token id, ``^tok-[0-9a-z]+$``; later ids sort after earlier ones."""
    return f"tok-{_base36_uuid7(moment)}"
