"""The newest keys and tokens of a user, for the user's page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin

from apikeys.models import AccessToken, ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest

    from apikeys.models import User

#: The maximum number of keys, and of tokens, on the page. The list pages show all.
SHOWN: Final = 20


def credentials_of(person: User, request: HttpRequest) -> Iterator[dict[str, Any]]:
    """Yield the keys and the tokens, if the logged-in person may view them."""
    for model in (ApiKey, AccessToken):
        pages: Any = admin.site.get_model_admin(model)
        if not pages.has_view_permission(request):
            continue
        owned = pages.get_queryset(request).filter(created_by=person).order_by("-id")
        rows = list(owned[: SHOWN + 1])
        yield {
            "opts": model._meta,
            "more": len(rows) > SHOWN,
            "rows": [(row, pages.shown_status(row)) for row in rows[:SHOWN]],
        }
