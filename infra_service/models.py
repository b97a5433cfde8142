"""Tables of the service itself."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Final

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from infra_service.lib.api.idempotent_requests import IdempotentRequest

__all__ = ["HousekeepingPart", "IdempotentRequest", "Timeline"]

#: A housekeeper that was killed is taken for gone after this.
LEASE: Final = dt.timedelta(minutes=15)
#: A part that was not done for so long is late: each day it should be. An alert says the same.
LATE_AFTER: Final = dt.timedelta(days=2)


class HousekeepingPartQuerySet(models.QuerySet["HousekeepingPart"]):
    """Conditional writes decide who does a part."""

    def late(self) -> HousekeepingPartQuerySet:
        """Return those that were not done to their end for too long."""
        return self.filter(succeeded_at__lt=timezone.now() - LATE_AFTER)

    def take(self, name: str) -> uuid.UUID | None:
        """Take the part for a while, unless somebody has it; return what proves it."""
        self.get_or_create(name=name)
        now, holder = timezone.now(), uuid.uuid4()
        free = Q(leased_until=None) | Q(leased_until__lte=now)
        taken = self.filter(free, name=name).update(holder=holder, leased_until=now + LEASE)
        return holder if taken else None

    def held(self, name: str, holder: uuid.UUID) -> HousekeepingPartQuerySet:
        """Return the part if it is still held by this holder."""
        return self.filter(name=name, holder=holder)

    def keep(self, name: str, holder: uuid.UUID, removed: int) -> bool:
        """Count what was removed, and hold the part for longer; return whether it is held."""
        until = timezone.now() + LEASE
        held = self.held(name, holder)
        return bool(held.update(leased_until=until, removed=F("removed") + removed))

    def release(self, name: str, holder: uuid.UUID, seconds: float, *, is_done: bool) -> None:
        """Let others have the part, and note how it went."""
        done = {"succeeded_at": timezone.now()} if is_done else {}
        held = self.held(name, holder)
        held.update(holder=None, leased_until=None, seconds=seconds, **done)


class HousekeepingPart(models.Model):
    """A part of housekeeping: who does it now, and when it was last done to its end."""

    name = models.CharField(max_length=30, primary_key=True)
    holder = models.UUIDField(null=True)
    leased_until = models.DateTimeField(null=True)
    # At first the moment from which it should have been done.
    succeeded_at = models.DateTimeField(default=timezone.now)
    # Of the last run.
    seconds = models.FloatField(default=0)
    # In all.
    removed = models.PositiveBigIntegerField(default=0)

    objects = HousekeepingPartQuerySet.as_manager()

    class Meta:
        # Of the admin, where the overview tells of those that are late.
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.name


class Timeline(models.Model):
    """A timeline of PostgreSQL's log, marked by the first read that a replica could serve.

    Standbys that are promoted separately begin timelines of the same number. The mark differs.
    """

    # As in the names of log files: eight hexadecimal digits.
    number = models.CharField(max_length=8, primary_key=True)
    mark = models.UUIDField()

    class Meta:
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.number
