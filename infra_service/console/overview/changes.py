"""Changes of the last 24 hours by environment."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from infra_service.change_history.models import Change, Kind
from infra_service.change_history.signs import WORDS, sign
from infra_service.console.overview.counting import EXACT, Number, up_to
from states.models import Environment

if TYPE_CHECKING:
    import uuid

_WITHIN: Final = dt.timedelta(hours=24)
#: The maximum number of rows on the page: the environments with the most changes.
_SHOWN: Final = 6


def latest_changes() -> dict[str, Any]:
    """Return the number of changes by environment and action, up to the newest ``EXACT``.

    All changes of workloads form a single row, because workloads have no environment.
    """
    recent = Change.objects.since(timezone.now() - _WITHIN).order_by("-id")
    found = list(recent.values_list("environment_id", "action")[: EXACT + 1])
    by_environment: dict[uuid.UUID | None, Counter[str]] = defaultdict(Counter)
    for environment_id, action in found[:EXACT]:
        by_environment[environment_id][action] += 1
    most_first = sorted(by_environment.items(), key=lambda item: -item[1].total())
    shown = most_first[:_SHOWN]
    environments = Environment.objects.in_bulk([key for key, _ in shown if key is not None])
    number = up_to(EXACT, len(found))
    return {
        "number": number,
        "others": len(most_first) - len(shown),
        "rows": [
            {
                **_place(key, environments),
                "chart": f"changes-{position}",
                "number": Number(actions.total()),
                "parts": [(sign(a), WORDS[a], n) for a, n in sorted(actions.items())],
            }
            for position, (key, actions) in enumerate(shown)
        ],
    }


def _place(key: uuid.UUID | None, environments: dict[Any, Environment]) -> dict[str, str]:
    """Return the name of an environment, or of all workloads, and the URL of its changes."""
    if key is None:
        name, query = "Workloads", {"kind": Kind.WORKLOAD.value}
    else:
        name, query = str(environments.get(key, key)), {"environment": str(key)}
    url = reverse("admin:change_history_change_changelist")
    return {"name": name, "url": f"{url}?{urlencode(query)}"}
