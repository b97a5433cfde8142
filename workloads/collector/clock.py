"""The API server's clock, estimated from its responses.

The API server stamps the objects of a cluster, so their ages follow its clock, which may differ
from the local clock.
"""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING, Final

from django.utils.http import parse_http_date_safe

if TYPE_CHECKING:
    from collections.abc import Mapping

# The maximum plausible lead, in seconds. A proxy may send a cached or wrong date.
_MOST: Final = 24 * 3600.0


class ServerClock:
    """The lead of the API server's clock over the local clock; 0 before the first response."""

    def __init__(self) -> None:
        self._lead = 0.0

    def learn(self, headers: Mapping[str, str], took: float) -> None:
        """Update the estimate from the `Date` of a response that arrived after `took` seconds.

        The server wrote the date within this time, truncated to a whole second. The estimate
        changes only if it contradicts the date, so that a slow response does not distort it.
        """
        date = parse_http_date_safe(headers.get("Date", ""))
        if date is None:
            return
        least = date - time.time()
        lead = min(max(self._lead, least), least + 1 + took)
        if abs(lead) <= _MOST:
            self._lead = lead

    def at(self, moment: dt.datetime) -> dt.datetime:
        """Return the server's time at a local time."""
        return moment + dt.timedelta(seconds=self._lead)
