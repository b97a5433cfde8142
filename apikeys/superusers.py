"""Records of new superusers in the audit log, for commands and the shell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.dispatch import receiver

from apikeys import actors, audit
from apikeys.models.users import superuser_created

if TYPE_CHECKING:
    from apikeys.models import User


@receiver(superuser_created)
def record_superuser(user: User, **_kwargs: Any) -> None:
    """Record a superuser and its creator. An error rolls back the creation."""
    made = {"name": user.username, "is_superuser": True}
    audit.authorize_and_record(actors.current_actor(), "user.create", user.pk, **made)
