from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.auth.models import UserManager as DjangoUserManager
from django.db import models, transaction
from django.dispatch import Signal
from django.utils import timezone
from uuid_utils.compat import uuid7

from apikeys.idle_owners import signed_on_last

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    from django.db.models import QuerySet


#: Sent with ``user``, in the transaction that creates a superuser.
superuser_created = Signal()


class UserManager(DjangoUserManager["User"]):
    """A manager that sends a signal when it creates a superuser, for the audit log."""

    use_in_migrations = False

    def create_superuser(self, *args: Any, **fields: Any) -> User:
        """Create a superuser, and record the creation in the same transaction."""
        with transaction.atomic(using=self.db):
            user = super().create_superuser(*args, **fields)
            superuser_created.send(self.model, user=user)
        return user

    def idle(self, days: int, now: dt.datetime) -> QuerySet[User]:
        """Return active people without a sign-on for this number of days."""
        return self.filter(signed_on_last(now - dt.timedelta(days=days)), is_active=True)

    def lock(self, user_id: uuid.UUID) -> None:
        """Lock a user until the transaction ends, so that concurrent requests respect its limits.

        To avoid deadlocks, lock the user before any credential. The lock does not delay inserts
        that refer to the user, such as new tokens.
        """
        list(self.select_for_update(no_key=True).filter(pk=user_id).values_list("pk"))


class User(AbstractUser):
    """A person or a machine account that owns keys and tokens."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    display_name = models.CharField(max_length=200, blank=True)
    # A part of the session hash. Deactivation changes it, so that earlier sessions stay expired
    # after a reactivation.
    sessions_end = models.DateTimeField(null=True, editable=False)

    objects: ClassVar[UserManager] = UserManager()

    def save(self, **options: Any) -> None:
        """Save the user. Saving an inactive user expires all sessions of the user."""
        if not self.is_active:
            self.sessions_end = timezone.now()
            if (names := options.get("update_fields")) is not None:
                options["update_fields"] = {*names, "sessions_end"}
        super().save(**options)

    def get_session_auth_hash(self) -> str:
        """Return the hash that a session of this user must contain."""
        return f"{super().get_session_auth_hash()}{self._epoch}"

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        """Yield the hash for each former SECRET_KEY."""
        for known in super().get_session_auth_fallback_hash():
            yield f"{known}{self._epoch}"

    @property
    def _epoch(self) -> str:
        return "" if self.sessions_end is None else self.sessions_end.isoformat()
