"""UUIDv7 that follow the clock, even after it was set back."""

from __future__ import annotations

import threading
import time
import uuid
from typing import Final

from uuid_utils import compat

#: The maximum lead of ids over the clock, in milliseconds. Ids of rows are compared with times
#: (infra_service.lib.database.months).
_MOST_AHEAD: Final = 60_000
_TIME_AT: Final = 80  # the position of the time, which is the first 48 of 128 bits

_guard = threading.Lock()
_last = 0


def uuid7() -> uuid.UUID:
    """Return a new UUIDv7. The ids of a process increase, unless the clock is set back.

    uuid_utils never decreases its ids. After a clock was ahead for a moment, it would use that
    time until the process restarts.
    """
    global _last  # noqa: PLW0603 - a state of the process
    made = compat.uuid7()
    now = time.time_ns()
    if (made.int >> _TIME_AT) - now // 1_000_000 <= _MOST_AHEAD:
        return made
    with _guard:
        number = compat.uuid7(nanoseconds=now).int
        if number <= _last < number + (_MOST_AHEAD << _TIME_AT):
            number = _last + 1
        _last = number
    return uuid.UUID(int=number)
