"""What the admin's first page tells: a fixed number of queries, none of which reads a big table."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import TYPE_CHECKING, Any, Final

from django.db import connection
from django.utils import timezone

from apikeys.models import AccessToken, ApiKey, AuditEvent
from apikeys.querysets import SOON
from states.models import State, StateVersion
from workloads.cluster_health import ClusterHealth, cluster_health
from workloads.collection import CollectionStatus, collection_status
from workloads.models import Cluster

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser
    from django.db.models import Model

    from apikeys.models import User

#: Up to here rows are counted, beyond it says "more than" or asks PostgreSQL's statistics.
EXACT: Final = 10_000
_DAYS: Final = 14
_LOCKS: Final = 1_000
_CLUSTERS: Final = 1_000
_LINES: Final = 10
_HOUR, _DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
_MARKS: Final = {
    ClusterHealth.ERROR: "error",
    ClusterHealth.DEGRADED: "warning",
    ClusterHealth.UNREACHABLE: "lost",
    ClusterHealth.PENDING: "idle",
    ClusterHealth.HEALTHY: "ok",
}


def overview(user: User | AnonymousUser) -> dict[str, Any]:
    """Return what this person may see of the whole, by section."""
    sections = {
        "states": ("states.view_state", _states),
        "clusters": ("workloads.view_cluster", _clusters),
        "keys": ("apikeys.view_apikey", _expiring_keys),
        "tokens": ("apikeys.view_accesstoken", _expiring_tokens),
        "events": ("apikeys.view_auditevent", _events),
    }
    return {name: read() for name, (may, read) in sections.items() if user.has_perm(may)}


def about_how_many(model: type[Model]) -> tuple[int, bool]:
    """Return how many rows the table has, and whether that is exact.

    Counting a million takes 70 ms, so PostgreSQL is asked what its statistics say.
    """
    rows = model._default_manager.order_by()[: EXACT + 1].count()
    if rows <= EXACT or connection.vendor != "postgresql":
        return (rows, True) if rows <= EXACT else (model._default_manager.count(), True)
    with connection.cursor() as cursor:
        table = model._meta.db_table
        cursor.execute("SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [table])
        (estimate,) = cursor.fetchone()
    return max(estimate, rows), False


def _states() -> dict[str, Any]:
    now = timezone.now()
    count, is_exact = about_how_many(State)
    locked = State.objects.visible().filter(lock_id__isnull=False)
    since = list(locked.order_by("id").values_list("lock_acquired_at", flat=True)[: _LOCKS + 1])
    ages = sorted((now - moment for moment in since[:_LOCKS] if moment), reverse=True)
    parts = (
        ("ok", "up to an hour", sum(age <= _HOUR for age in ages)),
        ("warning", "up to a day", sum(_HOUR < age <= _DAY for age in ages)),
        ("error", "longer", sum(age > _DAY for age in ages)),
    )
    oldest = locked.select_related("component", "environment").order_by("lock_acquired_at")
    return {
        "count": count,
        "is_exact": is_exact,
        "locked": len(ages),
        "locked_more": len(since) > _LOCKS,
        "locked_parts": parts,
        "oldest": [] if len(since) > _LOCKS else list(oldest[:5]),
        "pushes": (pushes := pushes_per_day(now)),
        "pushes_today": pushes[-1][1],
        "pushes_limit": EXACT,
        "pushes_cut": any(number >= EXACT for _, number in pushes),
    }


def pushes_per_day(now: dt.datetime) -> list[tuple[str, int]]:
    """Return the last days, UTC, with how many versions each brought, counted up to ``EXACT``.

    A version's id begins with the moment of its push, so a day is a stretch of the primary key.
    """
    today = now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = [today - ago * _DAY for ago in reversed(range(_DAYS))]
    return [
        (
            f"{day:%d %b}",
            StateVersion.objects.filter(id__gte=_first_id(day), id__lt=_first_id(day + _DAY))
            .order_by()[:EXACT]
            .count(),
        )
        for day in days
    ]


def _first_id(moment: dt.datetime) -> uuid.UUID:
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80)


def _clusters() -> dict[str, Any]:
    clusters = list(Cluster.objects.timed().order_by("id")[: _CLUSTERS + 1])
    judged = [
        (c, cluster_health(c, c.read_at), collection_status(c, c.read_at))
        for c in clusters[:_CLUSTERS]
    ]
    counts = [(status, sum(of is status for _, of, _ in judged)) for status in _MARKS]
    worst = sorted(judged, key=lambda entry: list(_MARKS).index(entry[1]))
    return {
        "count": len(judged),
        "more": len(clusters) > _CLUSTERS,
        "parts": [(_MARKS[status], status.title(), number) for status, number in counts],
        "unwell": [
            {
                "cluster": cluster,
                "mark": _MARKS[health],
                "health": health.title(),
                "collection": collection.title(),
                "is_failing": collection is CollectionStatus.FAILING,
            }
            for cluster, health, collection in worst
            if health is not ClusterHealth.HEALTHY or collection is not CollectionStatus.OK
        ][:5],
    }


def _expiring_keys() -> list[ApiKey]:
    keys = ApiKey.objects.expiring(SOON).select_related("created_by").order_by("expires_at")
    return list(keys.defer("digest", "previous_digest")[:_LINES])


def _expiring_tokens() -> list[AccessToken]:
    tokens = AccessToken.objects.issued().expiring(SOON).select_related("created_by")
    return list(tokens.order_by("expires_at").defer("digest")[:_LINES])


def _events() -> list[AuditEvent]:
    return list(AuditEvent.objects.order_by("-id")[:_LINES])
