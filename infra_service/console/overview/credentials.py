"""Keys and tokens that need attention: expiring soon, or never used."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.urls import reverse

from apikeys.models import AccessToken, ApiKey
from infra_service.console.overview.counting import MOST, SHOWN, Number, number_of
from infra_service.lib.admin.permissions import may_view
from infra_service.lib.database.bounded_pages import read_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.auth.models import AnonymousUser

    from apikeys.models import User

_MODELS: Final = (ApiKey, AccessToken)


class Found(NamedTuple):
    """The first rows of a model, and the total."""

    model: Any
    rows: Sequence[Any]
    number: Number


def expiring_soon(user: User | AnonymousUser) -> list[Found]:
    """Return the keys and issued tokens that expire within 30 days, the earliest first."""
    return [
        Found(model, _shown(ending.order_by("expires_at"))[:SHOWN], number_of(ending))
        for model in _visible(user)
        for ending in (model.objects.issued().expiring(),)
    ]


def never_used(user: User | AnonymousUser) -> list[Found]:
    """Return the unused keys and issued tokens, the newest first.

    The last use is not indexed, because each use would then write to the index. The search is
    therefore bounded, as in the list of credentials.
    """
    found = []
    for model in _visible(user):
        page = read_page(
            model.objects.issued().unused(), key=("-id",), position=None, size=MOST, read=_ids
        )
        first = [row["id"] for row in page.rows[:SHOWN]]
        rows = _shown(model.objects.filter(pk__in=first).order_by("-id"))
        number = Number(len(page.rows), is_more=page.position is not None)
        found.append(Found(model, list(rows) if first else [], number))
    return found


def first_of_all(found: Sequence[Found], moment: str) -> list[dict[str, Any]]:
    """Return the first keys and tokens together, ordered by the column ``moment``."""
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
    return sorted(rows, key=itemgetter("moment"))[:SHOWN]


def _visible(user: User | AnonymousUser) -> list[Any]:
    return [model for model in _MODELS if may_view(user, model)]


def _ids(queryset: Any, order: Sequence[str], limit: int) -> list[Any]:
    return list(queryset.values("id").order_by(*order)[:limit])


def _shown(queryset: Any) -> Any:
    """Load the rows with their owners, without digests of secrets."""
    fields = ("name", "created_at", "expires_at", "created_by__username")
    return queryset.select_related("created_by").only(*fields)
