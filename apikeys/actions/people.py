"""What is done with all keys and tokens of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from apikeys.actions.access_tokens import revoke_access_token
from apikeys.actions.api_keys import revoke_api_key

if TYPE_CHECKING:
    from apikeys.audit import Actor
    from apikeys.models import User


@transaction.atomic
def revoke_credentials(*, user: User, actor: Actor) -> None:
    """Revoke every key and token of the user that would work if the user were active."""
    for key in user.api_keys.active():
        revoke_api_key(key=key, actor=actor)
    for token in user.access_tokens.issued().active():
        revoke_access_token(token=token, actor=actor)
