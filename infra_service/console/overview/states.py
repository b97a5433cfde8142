"""State figures for the overview: count, locks, leaked tokens, indexing and pushes."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.urls import reverse
from django.utils import timezone

from apikeys.credential_names import credential_names
from infra_service.console.overview.counting import (
    EXACT,
    MOST,
    SHOWN,
    Number,
    about_how_many,
    number_of,
    total_of,
    up_to,
)
from infra_service.lib.database.months import first_id
from states.lock_holders import STALE_AFTER, holder_of
from states.metrics import MAX_LOCKS
from states.models import State, StateVersion
from states.resources.leaked_tokens import newest_working

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from django.contrib.auth.models import AnonymousUser

    from apikeys.models import User

_DAYS: Final = 14
_DAY: Final = dt.timedelta(days=1)
#: If a state waits longer for the index, the indexer is stopped or too slow.
_INDEXED_WITHIN: Final = dt.timedelta(minutes=15)


class HeldLocks(NamedTuple):
    """The number of held locks, and the states with stale locks."""

    number: Number
    #: The oldest lock first.
    stale: Sequence[uuid.UUID]


def held_locks() -> HeldLocks:
    """Return the held locks, from an index of locked states, up to the limit of the metrics."""
    locked = State.objects.visible().filter(lock_id__isnull=False).order_by("id")
    found = list(locked.values_list("lock_acquired_at", "pk")[: MAX_LOCKS + 1])
    since = timezone.now() - STALE_AFTER
    stale = [pk for moment, pk in sorted(found[:MAX_LOCKS]) if moment and moment < since]
    return HeldLocks(up_to(MAX_LOCKS, len(found)), stale)


def describe_locks(states: Sequence[uuid.UUID], user: User | AnonymousUser) -> list[dict[str, Any]]:
    """Return the holder and the token of each lock.

    The token identifies the pipeline. Only users who may view tokens see the name of the token.
    """
    found = State.objects.select_related("component", "environment").in_bulk(states)
    held = ((found[pk], holder_of(found[pk])) for pk in states if pk in found)
    rows = [{"state": state, **holder._asdict()} for state, holder in held if holder]
    names = credential_names(user, [row["token_id"] for row in rows])
    return [{**row, "token": names.get(row["token_id"])} for row in rows]


def leaked_tokens(user: User | AnonymousUser) -> tuple[Number, Sequence[dict[str, Any]]]:
    """Return the number of active keys and tokens found in states, and the newest findings.

    Only users who may view a credential see its name.
    """
    found, is_more = newest_working(MOST)
    number = Number(len(found), is_more=is_more)
    states = State.objects.select_related("component", "environment").in_bulk(
        [row.state_id for row, _ in found[:SHOWN]]
    )
    return number, [
        {
            "state": states[row.state_id],
            "found": row,
            "kind": exposed.kind,
            **_named(exposed.credential, user),
        }
        for row, exposed in found[:SHOWN]
        if row.state_id in states
    ]


def _named(credential: Any, user: User | AnonymousUser) -> dict[str, str]:
    model = credential._meta.model_name
    if not user.has_perm(f"apikeys.view_{model}"):
        return {}
    url = reverse(f"admin:apikeys_{model}_change", args=(credential.pk,))
    return {"name": credential.name or credential.pk, "url": url}


def not_indexed() -> tuple[Number, list[State]]:
    """Return the number of states with late or failed indexing, and the first rows.

    The queries read two partial indexes that contain only these states.
    """
    since = timezone.now() - _INDEXED_WITHIN
    kinds = (
        State.objects.unreadable(),
        State.objects.behind().filter(index_problem="", updated_at__lt=since),
    )
    numbers = [number_of(states) for states in kinds]
    found = [
        state
        for states, number in zip(kinds, numbers, strict=True)
        if number.value
        for state in states.select_related("component", "environment").order_by("pk")[:SHOWN]
    ]
    return total_of(numbers), found[:SHOWN]


def state_figures(locks: HeldLocks) -> dict[str, Any]:
    """Return the number of states, of locked states and of pushes."""
    count, is_exact = about_how_many(State.objects.visible(), "state_present")
    pushes = pushes_per_day(timezone.now())
    return {
        "count": count,
        "is_exact": is_exact,
        "locked": locks.number,
        "pushes": pushes,
        "pushes_today": Number(pushes[-1][1], is_more=pushes[-1][1] >= EXACT),
        "pushes_limit": EXACT,
        "pushes_cut": any(number >= EXACT for _, number in pushes),
        "has_pushes": any(number for _, number in pushes),
    }


def pushes_per_day(now: dt.datetime) -> list[tuple[str, int]]:
    """Return the number of new versions on each of the last 14 days (UTC), up to ``EXACT``.

    The id of a version starts with its creation time, so a day is a range of the primary key.
    """
    today = now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = [today - ago * _DAY for ago in reversed(range(_DAYS))]
    return [
        (
            f"{day:%d %b}",
            StateVersion.objects.filter(id__gte=first_id(day), id__lt=first_id(day + _DAY))
            .order_by()[:EXACT]
            .count(),
        )
        for day in days
    ]
