"""The table of stored responses to requests with an Idempotency-Key."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone

from infra_service.lib import encryption
from infra_service.lib.database.batches import remove_in_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The retention of a response to a request with an Idempotency-Key.
ANSWERS_KEPT: Final = dt.timedelta(hours=24)
#: The retention of a response with a secret.
SECRETS_KEPT: Final = dt.timedelta(minutes=10)
#: The maximum number of responses that a statement deletes.
_BATCH: Final = 500


class IdempotentRequestQuerySet(models.QuerySet["IdempotentRequest"]):
    def with_answers_of_other_keys(self) -> IdempotentRequestQuerySet:
        """Return the requests with responses that are not encrypted with the current key."""
        kept = self.filter(answer__isnull=False, answer_until__gt=timezone.now())
        return kept.exclude(encryption_key=encryption.current_key())

    def remove_answers(self) -> int:
        """Delete a batch of expired responses. Skip rows that a concurrent deletion has locked."""
        over = self.filter(answer__isnull=False, answer_until__lte=timezone.now())
        with transaction.atomic():
            locked = over.select_for_update(skip_locked=True)[:_BATCH].values_list("pk", flat=True)
            return self.filter(pk__in=list(locked)).update(answer=None)

    def remove_old(self) -> Iterator[int]:
        """Delete expired responses and requests, and yield the size of each batch."""
        while removed := self.remove_answers():
            yield removed
        old = self.filter(created_at__lte=timezone.now() - ANSWERS_KEPT)
        yield from remove_in_batches(old, "created_at")


class IdempotentRequest(models.Model):
    """A POST with an Idempotency-Key and its response."""

    # SHA-256 of the digest of the caller's secret and the Idempotency-Key, in hexadecimal.
    id = models.CharField(max_length=64, primary_key=True)
    # SHA-256 of method, path, query and body.
    fingerprint = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=timezone.now)
    status = models.PositiveSmallIntegerField(null=True)
    # The encrypted response, or null after its deletion.
    answer = models.BinaryField(null=True)
    encryption_key = models.CharField(max_length=16, default="")
    answer_until = models.DateTimeField(null=True)

    objects = IdempotentRequestQuerySet.as_manager()

    class Meta:
        # The table belongs to the project's app, because libraries have no migrations.
        app_label = "infra_service"
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
        """Return whether the key may be used again."""
        return self.created_at <= timezone.now() - ANSWERS_KEPT

    def store(self, status: int, body: bytes, *, has_secret: bool) -> None:
        """Encrypt and store the response."""
        self._encrypt(body)
        self.status = status
        self.answer_until = self.created_at + (SECRETS_KEPT if has_secret else ANSWERS_KEPT)
        self.save(force_update=True)

    def reencrypt(self) -> bool:
        """Encrypt the response with the current key, and return whether the row changed."""
        body, used = self.answer_body(), self.encryption_key
        if body is None:
            return False
        self._encrypt(body)
        as_seen = IdempotentRequest.objects.filter(
            pk=self.pk, encryption_key=used, answer__isnull=False
        )
        return bool(as_seen.update(answer=self.answer, encryption_key=self.encryption_key))

    def answer_body(self) -> bytes | None:
        """Return the response, or None if it has expired or its encryption key is missing."""
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
        """The associated data, which prevents decryption of a response moved to another row."""
        return b"idempotent" + bytes.fromhex(self.id)
