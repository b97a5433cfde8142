"""Deactivate a user, and revoke all keys, tokens, trust policies and webhooks of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.db import transaction

from apikeys import audit
from apikeys.actions.owned import OWNED
from apikeys.models import User

if TYPE_CHECKING:
    from apikeys.actors import Actor


def check_superuser_remains(user: User) -> None:
    """Refuse to remove the last active superuser.

    Concurrent checks wait until the transaction ends.

    Raises:
        ValidationError: there is no other active superuser.
    """
    active = User.objects.filter(is_superuser=True, is_active=True).order_by("pk")
    locked = active.select_for_update(no_key=True).values_list("pk", flat=True)
    if list(locked) == [user.pk]:
        raise ValidationError(
            f"{user.username} is the last active superuser. First create another superuser with "
            "createsuperuser"
        )


@transaction.atomic
def deactivate_user(*, user: User, actor: Actor) -> bool:
    """Deactivate a user, and return whether the user was active.

    The user's sessions expire. The service rejects the user's keys, tokens and trust policies until
    the user is active again.

    Raises:
        ValidationError: the user is the last active superuser.
    """
    check_superuser_remains(user)
    locked = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if not locked.is_active:
        return False
    audit.authorize_and_record(
        actor, "user.change", locked.pk, name=locked.username, is_active=False
    )
    locked.is_active = False
    locked.save(update_fields=["is_active"])
    return True


@transaction.atomic
def revoke_credentials(*, user: User, actor: Actor) -> None:
    """Revoke the credentials that would work if the user were active.

    Also disable the trust policies, and the objects without a key, such as webhooks.
    """
    for kind in OWNED:
        for owned in kind.enabled(user):
            kind.revoke(owned, actor)
