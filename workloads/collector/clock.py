"""The API server's clock, known from its answers.

Ages of a cluster's objects are reckoned by it, since it stamped them. It may differ from ours.
"""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING, Final

from django.utils.http import parse_http_date_safe

if TYPE_CHECKING:
    from collections.abc import Mapping

# A proxy may hand on a date that it has kept, or made up.
_MOST: Final = 24 * 3600.0


class ServerClock:
    """How far the API server's clock is ahead of ours; not at all until an answer says so."""

    def __init__(self) -> None:
        self._lead = 0.0

    def learn(self, headers: Mapping[str, str], took: float) -> None:
        """Take the `Date` of an answer that has just come, and took so many seconds.

        It was written somewhere within them, and is cut to a whole second. While what is known
        agrees with that it stays as it is, so that a slow answer does not change it.
        """
        date = parse_http_date_safe(headers.get("Date", ""))
        if date is None:
            return
        least = date - time.time()
        lead = min(max(self._lead, least), least + 1 + took)
        if abs(lead) <= _MOST:
            self._lead = lead

    def at(self, moment: dt.datetime) -> dt.datetime:
        """Return what it shows when ours shows `moment`."""
        return moment + dt.timedelta(seconds=self._lead)
