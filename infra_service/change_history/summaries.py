"""Counts of changes by day, kind, environment and action."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, F
from django.db.models.functions import TruncDate

from infra_service.lib.api.parameters import InvalidParameter

if TYPE_CHECKING:
    from infra_service.change_history.models import ChangeQuerySet

#: The longest period, which bounds the rows that a summary reads.
LONGEST: Final = dt.timedelta(days=31)
MOST_GROUPS: Final = 10_000


def summarize(changes: ChangeQuerySet, since: dt.datetime, until: dt.datetime) -> dict[str, Any]:
    """Count the changes of the period by day, kind, environment and action, in a single query.

    Raises:
        InvalidParameter: there are too many groups.
    """
    grouped = (
        changes.between(since, until)
        .order_by()
        # A join, because the subquery of ``with_names`` would run for each change.
        .values(
            "kind",
            "environment_id",
            "action",
            day=TruncDate("occurred_at", tzinfo=dt.UTC),
            environment_slug=F("environment__slug"),
        )
        .annotate(changes=Count("id"))
        .order_by(
            "day", "kind", F("environment_slug").asc(nulls_last=True), "environment_id", "action"
        )
    )
    groups = list(grouped[: MOST_GROUPS + 1])
    if len(groups) > MOST_GROUPS:
        text = f"The summary has more than {MOST_GROUPS:,} groups. Choose a shorter period."
        raise InvalidParameter("since", text, "OUT_OF_RANGE")
    total = sum(group["changes"] for group in groups)
    return {"since": since, "until": until, "total": total, "groups": groups}
