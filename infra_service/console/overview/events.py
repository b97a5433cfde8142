"""The latest audit events with the names of their resources, and failed logins."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone

from apikeys.models import AuditEvent
from infra_service.console.event_names import describe, key_of
from infra_service.console.overview.counting import MOST, Number, up_to

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

    from apikeys.models import User

_LINES: Final = 10
#: The period for which the overview shows failed logins.
LOGINS_WITHIN: Final = dt.timedelta(days=1)


def latest_events(user: User | AnonymousUser) -> list[dict[str, Any]]:
    """Return the latest events, with the names of resources that the user may view."""
    events = list(AuditEvent.objects.order_by("-id")[:_LINES])
    named = describe(events, user)
    nothing = ("", "")
    found = [(event, *named.get(key_of(event), nothing)) for event in events]
    return [{"event": event, "name": name, "url": url} for event, name, url in found]


def failed_logins() -> tuple[Number, list[dict[str, Any]]]:
    """Return the number of failed logins in a day, and the attempts by name and address."""
    since = timezone.now() - LOGINS_WITHIN
    failed = AuditEvent.objects.since(since).filter(action="user.login_failed")
    newest_first = failed.order_by("-occurred_at", "-id")
    events = list(newest_first.only("occurred_at", "address", "details")[: MOST + 1])
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for event in events[:MOST]:
        key = (event.details.get("name", ""), event.address or "")
        row = rows.setdefault(key, {"event": event, "name": key[0], "tries": 0})
        row["tries"] += 1
    most_first = sorted(rows.values(), key=lambda row: -row["tries"])
    return up_to(MOST, len(events)), most_first
