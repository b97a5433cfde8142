"""Kinds of objects that work as long as their owner is active.

Other apps add their kinds, such as webhooks without a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from apikeys.actions.access_tokens import revoke_access_token
from apikeys.actions.api_keys import revoke_api_key
from apikeys.actions.trust_policies import disable_trust_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet

    from apikeys.actors import Actor
    from apikeys.models import User


class OwnedKind(NamedTuple):
    """A kind of object, with the names of one object and of several objects."""

    name: str
    plural: str
    #: Returns the objects of a user that would work if the user were active.
    enabled: Callable[[User], QuerySet[Any]]
    #: Revokes or disables an object, so that its owner cannot enable it again.
    revoke: Callable[[Any, Actor], object]


OWNED: Final = [
    OwnedKind(
        "API key",
        "API keys",
        lambda user: user.api_keys.active(),
        lambda key, actor: revoke_api_key(key=key, actor=actor),
    ),
    OwnedKind(
        "access token",
        "access tokens",
        lambda user: user.access_tokens.issued().active(),
        lambda token, actor: revoke_access_token(token=token, actor=actor),
    ),
    OwnedKind(
        "trust policy",
        "trust policies",
        lambda user: user.trust_policies.filter(disabled_at=None),
        lambda policy, actor: disable_trust_policy(policy=policy, actor=actor),
    ),
]
