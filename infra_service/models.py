"""Tables of the service itself."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import TYPE_CHECKING, Final

from django.db import models, transaction
from django.db.models import F, Q
from django.utils import timezone

from infra_service.lib import encryption

if TYPE_CHECKING:
    from collections.abc import Iterator

#: An answer to a request with an Idempotency-Key is kept for so long.
ANSWERS_KEPT: Final = dt.timedelta(hours=24)
#: An answer with a secret is kept for so long.
SECRETS_KEPT: Final = dt.timedelta(minutes=10)
#: Rows that one statement removes.
_BATCH: Final = 500
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


class IdempotentRequestQuerySet(models.QuerySet["IdempotentRequest"]):
    def with_answers_of_other_keys(self) -> IdempotentRequestQuerySet:
        """Return the requests whose answer another key than the first encrypts."""
        kept = self.filter(answer__isnull=False, answer_until__gt=timezone.now())
        return kept.exclude(encryption_key=encryption.current_key())

    def remove_answers(self) -> int:
        """Remove a batch of answers whose time is over; another removal is never waited for."""
        over = self.filter(answer__isnull=False, answer_until__lte=timezone.now())
        with transaction.atomic():
            locked = over.select_for_update(skip_locked=True)[:_BATCH].values_list("pk", flat=True)
            return self.filter(pk__in=list(locked)).update(answer=None)

    def remove_old(self) -> Iterator[int]:
        """Remove answers and requests whose time is over, and yield how many each batch removed."""
        while removed := self.remove_answers():
            yield removed
        old = self.filter(created_at__lte=timezone.now() - ANSWERS_KEPT)
        while ids := list(old.order_by("created_at").values_list("pk", flat=True)[:_BATCH]):
            yield old.filter(pk__in=ids).delete()[0]


class IdempotentRequest(models.Model):
    """A POST with an Idempotency-Key and its answer (``infra_service.lib.api.idempotency``)."""

    # SHA-256 of the digest of the caller's secret and of the key, in hexadecimal.
    id = models.CharField(max_length=64, primary_key=True)
    # SHA-256 of method, path, query and body.
    fingerprint = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=timezone.now)
    status = models.PositiveSmallIntegerField(null=True)
    # Encrypted; null when it is removed.
    answer = models.BinaryField(null=True)
    encryption_key = models.CharField(max_length=16, default="")
    answer_until = models.DateTimeField(null=True)

    objects = IdempotentRequestQuerySet.as_manager()

    class Meta:
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["created_at"], name="idempotent_by_age"),
            models.Index(
                fields=["answer_until"],
                name="idempotent_answers",
                condition=Q(answer__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def is_over(self) -> bool:
        """Whether the key may be used again."""
        return self.created_at <= timezone.now() - ANSWERS_KEPT

    def store(self, status: int, body: bytes, *, has_secret: bool) -> None:
        """Store the answer, encrypted."""
        self._encrypt(body)
        self.status = status
        self.answer_until = self.created_at + (SECRETS_KEPT if has_secret else ANSWERS_KEPT)
        self.save(force_update=True)

    def reencrypt(self) -> bool:
        """Encrypt the answer with the first key; return whether this call did it."""
        body, used = self.answer_body(), self.encryption_key
        if body is None:
            return False
        self._encrypt(body)
        as_seen = IdempotentRequest.objects.filter(
            pk=self.pk, encryption_key=used, answer__isnull=False
        )
        return bool(as_seen.update(answer=self.answer, encryption_key=self.encryption_key))

    def answer_body(self) -> bytes | None:
        """Return the answer, or None when its time is over or its key is missing."""
        if self.answer is None or not self._is_kept:
            return None
        try:
            answer = encryption.Encrypted(self.answer, self.encryption_key)
            return encryption.decrypt(self._context, answer)
        except encryption.KeyMissingError:
            return None

    def _encrypt(self, body: bytes) -> None:
        self.answer, self.encryption_key = encryption.encrypt(self._context, body)

    @property
    def _is_kept(self) -> bool:
        return self.answer_until is not None and self.answer_until > timezone.now()

    @property
    def _context(self) -> bytes:
        """The associated data: an answer that was moved to another row does not decrypt."""
        return b"idempotent" + bytes.fromhex(self.id)


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
