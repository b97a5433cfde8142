"""Descriptions of the credentials and webhooks that work again when a user becomes active."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.template.defaultfilters import pluralize

from apikeys.owned import OWNED

if TYPE_CHECKING:
    from apikeys.models import User

# The highest exact count. The page shows larger numbers as "over 1000".
_COUNTED: Final = 1000


def reactivation_notice(user: User) -> str:
    """Describe the objects that work again after reactivation, or return an empty text."""
    keys, tokens, policies = (
        len(found.values_list("pk")[: _COUNTED + 1])
        for found in (
            user.api_keys.active(),
            user.access_tokens.issued().active(),
            user.trust_policies.filter(disabled_at=None),
        )
    )
    notices = []
    if keys or tokens:
        notices.append(_revived_secrets(keys, tokens))
    if policies:
        number = f"{_number(policies)} trust polic{pluralize(policies, 'y,ies')}"
        notices.append(
            f"If you make this user active, pipelines can get tokens through {number} again."
        )
    notices += [
        f"If you make this user active, {n} {kind.name}{pluralize(n)} will work again."
        for kind in OWNED
        if (n := kind.enabled(user).count())
    ]
    return " ".join(notices)


def _revived_secrets(keys: int, tokens: int) -> str:
    counted = ((keys, "API key"), (tokens, "access token"))
    credentials = " and ".join(f"{_number(n)} {name}{pluralize(n)}" for n, name in counted if n)
    minted = f", and so will tokens minted from the key{pluralize(keys)}" if keys else ""
    sentence = f"If you make this user active, {credentials} will work again for anyone with the"
    return f"{sentence} secret{pluralize(keys + tokens)}{minted}."


def _number(n: int) -> str:
    return f"over {_COUNTED}" if n > _COUNTED else str(n)
