"""Keys and tokens that somebody should see to: they end soon, or nobody ever used them."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.urls import reverse

from apikeys.models import AccessToken, ApiKey
from infra_service.console.overview.counting import MOST, Number, number_of
from infra_service.lib.database.bounded_pages import read_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.auth.models import AnonymousUser

    from apikeys.models import User

_MODELS: Final = (ApiKey, AccessToken)


class Found(NamedTuple):
    """The first of one model, and how many there are."""

    model: Any
    rows: Sequence[Any]
    number: Number


def ending_soon(user: User | AnonymousUser, most: int) -> list[Found]:
    """Return the keys and the issued tokens that end within 30 days, the next to end first."""
    return [
        Found(model, _shown(ending.order_by("expires_at"))[:most], number_of(ending))
        for model in _visible(user)
        for ending in (model.objects.issued().expiring(),)
    ]


def never_used(user: User | AnonymousUser, most: int) -> list[Found]:
    """Return the keys and the issued tokens that nobody has used, the newest first.

    No index tells of a use, because it would be written at each; so many rows are looked through
    as for the list.
    """
    found = []
    for model in _visible(user):
        page = read_page(
            model.objects.issued().unused(), key=("-id",), position=None, size=MOST, read=_ids
        )
        first = [row["id"] for row in page.rows[:most]]
        rows = _shown(model.objects.filter(pk__in=first).order_by("-id"))
        number = Number(len(page.rows), is_more=page.position is not None)
        found.append(Found(model, list(rows) if first else [], number))
    return found


def first_of_all(found: Sequence[Found], most: int, moment: str) -> list[dict[str, Any]]:
    """Return the first of keys and tokens together, in the order of the column ``moment``."""
    rows = [
        {
            "credential": row,
            "kind": one.model._meta.verbose_name,
            "url": reverse(f"admin:apikeys_{one.model._meta.model_name}_change", args=(row.pk,)),
            "moment": getattr(row, moment),
        }
        for one in found
        for row in one.rows
    ]
    return sorted(rows, key=itemgetter("moment"))[:most]


def _visible(user: User | AnonymousUser) -> list[Any]:
    return [model for model in _MODELS if user.has_perm(f"apikeys.view_{model._meta.model_name}")]


def _ids(queryset: Any, order: Sequence[str], limit: int) -> list[Any]:
    return list(queryset.values("id").order_by(*order)[:limit])


def _shown(queryset: Any) -> Any:
    """Return the rows with their owners, and without what a secret could be guessed by."""
    fields = ("name", "created_at", "expires_at", "created_by__username")
    return queryset.select_related("created_by").only(*fields)
