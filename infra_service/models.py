"""Tables of the service itself."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Final

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from infra_service.lib.api.idempotent_requests import IdempotentRequest

__all__ = ["EncryptionCanary", "HousekeepingPart", "IdempotentRequest", "Timeline"]

#: The time after which the lease of a killed process expires.
LEASE: Final = dt.timedelta(minutes=15)
#: The time after which a daily part is late. The alert uses the same value.
LATE_AFTER: Final = dt.timedelta(days=2)


class HousekeepingPartQuerySet(models.QuerySet["HousekeepingPart"]):
    """A queryset with conditional updates, which ensure that a single process runs a part."""

    def late(self) -> HousekeepingPartQuerySet:
        """Return the parts that last completed longer than ``LATE_AFTER`` ago."""
        return self.filter(succeeded_at__lt=timezone.now() - LATE_AFTER)

    def claim(self, name: str) -> uuid.UUID | None:
        """Acquire the lease of a part. Return the holder's id, or None if the part is leased."""
        self.get_or_create(name=name)
        now, holder = timezone.now(), uuid.uuid4()
        # A much later time is from before the clock was set back.
        is_invalid = Q(leased_until__gt=now + 2 * LEASE)
        free = Q(leased_until=None) | Q(leased_until__lte=now) | is_invalid
        is_claimed = self.filter(free, name=name).update(holder=holder, leased_until=now + LEASE)
        return holder if is_claimed else None

    def held(self, name: str, holder: uuid.UUID) -> HousekeepingPartQuerySet:
        """Return the part if this holder has its lease."""
        return self.filter(name=name, holder=holder)

    def keep(self, name: str, holder: uuid.UUID, removed: int) -> bool:
        """Add the number of removed rows and extend the lease.

        Return False if the lease is lost.
        """
        until = timezone.now() + LEASE
        held = self.held(name, holder)
        return bool(held.update(leased_until=until, removed=F("removed") + removed))

    def release(self, name: str, holder: uuid.UUID, seconds: float, *, is_done: bool) -> None:
        """Release the lease and record the result."""
        done = {"succeeded_at": timezone.now()} if is_done else {}
        held = self.held(name, holder)
        held.update(holder=None, leased_until=None, seconds=seconds, **done)


class HousekeepingPart(models.Model):
    """A part of housekeeping: its lease, and the time of its last completion."""

    name = models.CharField(max_length=30, primary_key=True)
    holder = models.UUIDField(null=True)
    leased_until = models.DateTimeField(null=True)
    # The time of creation until the part first completes.
    succeeded_at = models.DateTimeField(default=timezone.now)
    # The duration of the last run.
    seconds = models.FloatField(default=0)
    # The total of all runs.
    removed = models.PositiveBigIntegerField(default=0)

    objects = HousekeepingPartQuerySet.as_manager()

    class Meta:
        # For the admin, whose overview shows late parts.
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.name


class EncryptionCanary(models.Model):
    """A single row with a known value, encrypted with the keys of the database."""

    payload = models.BinaryField()
    encryption_key = models.CharField(max_length=16)

    class Meta:
        default_permissions = ("view",)
        constraints = [models.CheckConstraint(name="encryptioncanary_is_single", condition=Q(id=1))]

    def __str__(self) -> str:
        return f"canary of the key {self.encryption_key}"


class Timeline(models.Model):
    """A timeline of PostgreSQL's write-ahead log, with a mark.

    Standbys that are promoted separately start timelines with the same number, but with different
    marks. The first read that a replica could serve creates the mark.
    """

    # Eight hexadecimal digits, as in the names of WAL files.
    number = models.CharField(max_length=8, primary_key=True)
    mark = models.UUIDField()

    class Meta:
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.number
