"""What tokens are called, for who may see tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apikeys.models import AccessToken

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import AnonymousUser

    from apikeys.models import User


def token_names(user: User | AnonymousUser, ids: Iterable[str | None]) -> dict[str, str]:
    """Return the names of these access tokens by id; none to a person who may not see tokens."""
    if not user.has_perm("apikeys.view_accesstoken"):
        return {}
    return dict(AccessToken.objects.filter(pk__in=set(ids)).values_list("pk", "name"))
