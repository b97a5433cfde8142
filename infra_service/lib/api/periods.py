"""Read the query parameters ``since`` and ``until`` of a period."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from rest_framework.exceptions import ValidationError

from infra_service.lib.api.fields import TimestampField
from infra_service.lib.api.parameters import InvalidParameter

if TYPE_CHECKING:
    from rest_framework.request import Request

#: The length of the period if ``since`` is missing.
DEFAULT_PERIOD: Final = dt.timedelta(days=7)
PERIOD_PARAMETERS: Final = frozenset({"since", "until"})
_EARLIEST: Final = dt.datetime.min.replace(tzinfo=dt.UTC)


def read_period(
    request: Request, *, now: dt.datetime, longest: dt.timedelta
) -> tuple[dt.datetime, dt.datetime]:
    """Return the start and the end of the period. The default end is ``now``.

    Raises:
        InvalidParameter: a time is malformed, or the period is empty or longer than ``longest``.
    """
    until = _moment(request, "until") or now
    since = _moment(request, "since")
    if since is None:
        since = max(until, _EARLIEST + DEFAULT_PERIOD) - DEFAULT_PERIOD
    if since >= until:
        raise InvalidParameter("since", "Must be before until.", "OUT_OF_RANGE")
    if until - since > longest:
        raise InvalidParameter(
            "since", f"More than {longest.days} days before until.", "OUT_OF_RANGE"
        )
    return since, until


def _moment(request: Request, name: str) -> dt.datetime | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    field = TimestampField()
    try:
        return field.to_internal_value(text)
    except ValidationError as error:
        raise InvalidParameter(name, str(field.error_messages["invalid"])) from error
