"""Descriptions of the credentials and webhooks that work again when a user becomes active."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.text import get_text_list

from apikeys.actions.owned import OWNED

if TYPE_CHECKING:
    from apikeys.models import User

# The highest exact count. The page shows larger numbers as "over 1000".
_COUNTED: Final = 1000


def reactivation_notice(user: User) -> str:
    """Describe the objects that work again after reactivation, or return an empty text."""
    found = [(kind, len(kind.enabled(user).values_list("pk")[: _COUNTED + 1])) for kind in OWNED]
    counts = [f"{_number(n)} {kind.name if n == 1 else kind.plural}" for kind, n in found if n]
    if not counts:
        return ""
    return (
        f"If you make this user active, {get_text_list(counts, 'and')} will work again. Anyone "
        "with the secret of a key or token can then use this key or token."
    )


def _number(n: int) -> str:
    return f"over {_COUNTED}" if n > _COUNTED else str(n)
