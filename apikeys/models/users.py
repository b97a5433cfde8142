from __future__ import annotations

import datetime as dt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.auth.models import UserManager as DjangoUserManager
from django.db import models, transaction
from django.dispatch import Signal
from django.utils import timezone

from apikeys.idle_owners import signed_on_last
from infra_service.lib.uuids import uuid7

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Self

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

    #: The stored values of the columns, as this process last read or wrote them.
    _stored: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def from_db(
        cls,
        db: str | None,
        field_names: Collection[str],
        values: Collection[Any],
        **options: Any,
    ) -> Self:
        """Return a user from a row, and remember its values."""
        user = super().from_db(db, field_names, values, **options)
        user._remember(field_names)
        return user

    def refresh_from_db(
        self,
        using: str | None = None,
        fields: Iterable[str] | None = None,
        from_queryset: QuerySet[User] | None = None,
    ) -> None:
        """Read the row or some of its columns again, and remember the values."""
        fields = None if fields is None else list(fields)
        super().refresh_from_db(using, fields, from_queryset)
        self._remember(fields)

    def save(self, **options: Any) -> None:
        """Save the user. Saving an inactive user expires all sessions of the user.

        For an existing user, write only the changed columns. Otherwise, a new password would undo a
        deactivation that occurs while the password is hashed.
        """
        names = options.get("update_fields")
        if names is None and not self._state.adding and not options.get("force_insert"):
            names = self._changed()
        if not self.is_active:
            self.sessions_end = timezone.now()
            names = names if names is None else {*names, "sessions_end"}
        super().save(**{**options, "update_fields": names})
        self._remember(names)

    def _remember(self, names: Iterable[str] | None) -> None:
        """Remember these columns, or all columns, as stored."""
        loaded = self._loaded()
        chosen = loaded.keys() if names is None else loaded.keys() & set(names)
        self._stored = {**self._stored, **{name: loaded[name] for name in chosen}}

    def _changed(self) -> set[str]:
        """Return the columns whose values differ from the stored values."""
        absent = object()
        loaded = self._loaded().items()
        return {name for name, value in loaded if self._stored.get(name, absent) != value}

    def _loaded(self) -> dict[str, Any]:
        """Return the values of the columns, except deferred columns and the primary key."""
        names = (field.attname for field in self._meta.concrete_fields if not field.primary_key)
        return {name: self.__dict__[name] for name in names if name in self.__dict__}

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
