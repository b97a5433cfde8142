"""What is done with all keys, tokens and trust policies of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from apikeys.actions.access_tokens import revoke_access_token
from apikeys.actions.api_keys import revoke_api_key
from apikeys.actions.trust_policies import disable_trust_policy

if TYPE_CHECKING:
    from apikeys.actors import Actor
    from apikeys.models import User


@transaction.atomic
def revoke_credentials(*, user: User, actor: Actor) -> None:
    """Revoke and disable all that would work, or give tokens, if the user were active."""
    for key in user.api_keys.active():
        revoke_api_key(key=key, actor=actor)
    for token in user.access_tokens.issued().active():
        revoke_access_token(token=token, actor=actor)
    for policy in user.trust_policies.filter(disabled_at=None):
        disable_trust_policy(policy=policy, actor=actor)
