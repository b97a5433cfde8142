"""UUIDs in the format of the API, and UUIDv7 for a time."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Final

from uuid_utils.compat import uuid7

from infra_service.lib.database.months import milliseconds_of

if TYPE_CHECKING:
    import datetime as dt

_CANONICAL_UUID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)


def uuid7_of(moment: dt.datetime) -> uuid.UUID:
    """Return a new UUIDv7 for a time, with a precision of milliseconds."""
    return uuid7(nanoseconds=milliseconds_of(moment) * 1_000_000)


def parse_uuid(text: str) -> uuid.UUID | None:
    """Parse a UUID in the canonical 8-4-4-4-12 form, in upper or lower case, or return None."""
    return uuid.UUID(text) if _CANONICAL_UUID.fullmatch(text) else None
