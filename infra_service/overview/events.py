"""The trail's last events with names for ids, and the log-ins that failed."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils import timezone

from apikeys.models import AccessToken, ApiKey, AuditEvent, User
from infra_service.overview.counting import MOST, Number, up_to
from states.models import Application, Component, Environment, State
from workloads.models import Cluster

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from django.contrib.auth.models import AnonymousUser

_LINES: Final = 10
#: For so long a failed log-in is news.
LOGINS_WITHIN: Final = dt.timedelta(days=1)
# What the first word of an action is about, and the column of its name; a state has two names.
_NAMED: Final[dict[str, tuple[Any, str]]] = {
    "state": (State, ""),
    "api_key": (ApiKey, "name"),
    "access_token": (AccessToken, "name"),
    "application": (Application, "name"),
    "component": (Component, "name"),
    "environment": (Environment, "name"),
    "cluster": (Cluster, "name"),
    "user": (User, "username"),
    "group": (Group, "name"),
}


def latest_events(user: User | AnonymousUser) -> list[dict[str, Any]]:
    """Return the last events, with the names of what they are about where this person sees it."""
    events = list(AuditEvent.objects.order_by("-id")[:_LINES])
    ids: dict[str, set[str]] = defaultdict(set)
    for event in events:
        ids[_kind(event)].add(event.resource_id)
    named = {
        (kind, resource_id): (name, url)
        for kind, of_kind in ids.items()
        for resource_id, name, url in _names(kind, of_kind, user)
    }
    nothing = ("", "")
    found = [(event, *named.get((_kind(event), event.resource_id), nothing)) for event in events]
    return [{"event": event, "name": name, "url": url} for event, name, url in found]


def _kind(event: AuditEvent) -> str:
    return event.action.partition(".")[0]


def _names(
    kind: str, ids: Collection[str], user: User | AnonymousUser
) -> Iterator[tuple[str, str, str]]:
    """Yield the id, the name and the page of each that is there and has a name."""
    model, column = _NAMED.get(kind, (None, ""))
    if model is None:
        return
    label = f"{model._meta.app_label}_{model._meta.model_name}"
    if not user.has_perm(f"{model._meta.app_label}.view_{model._meta.model_name}"):
        return
    rows: Any = model._default_manager
    rows = rows.only(column) if column else rows.select_related("component", "environment")
    known = [pk for pk in ids if _is_id_of(model, pk)]
    for pk, row in rows.in_bulk(known).items():
        if name := getattr(row, column) if column else str(row):
            yield str(pk), name, reverse(f"admin:{label}_change", args=(pk,))


def _is_id_of(model: Any, text: str) -> bool:
    """Return whether it may be an id of the model: a failed log-in may be nobody's."""
    try:
        model._meta.pk.to_python(text)
    except ValidationError:
        return False
    return bool(text)


def failed_logins() -> tuple[Number, list[dict[str, Any]]]:
    """Return how many failed within a day, and who tried from where, the most tries first."""
    since = timezone.now() - LOGINS_WITHIN
    failed = AuditEvent.objects.filter(action="user.login_failed", occurred_at__gte=since)
    newest_first = failed.order_by("-occurred_at", "-id")
    events = list(newest_first.only("occurred_at", "address", "details")[: MOST + 1])
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for event in events[:MOST]:
        key = (event.details.get("name", ""), event.address or "")
        row = rows.setdefault(key, {"event": event, "name": key[0], "tries": 0})
        row["tries"] += 1
    most_first = sorted(rows.values(), key=lambda row: -row["tries"])
    return up_to(MOST, len(events)), most_first
