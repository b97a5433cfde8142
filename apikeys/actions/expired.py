"""Removal of expired access tokens and assertions. Their audit events remain.

API keys are never removed, because they are few, and tokens and other keys refer to them.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apikeys import audit
from apikeys.models import AccessToken, UsedAssertion
from infra_service.lib.database.batches import remove_in_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apikeys.actors import Actor

#: The number of tokens per transaction. On SQLite, every other writer waits for the transaction.
BATCH: Final = 500


def remove_expired_tokens(*, actor: Actor) -> Iterator[int]:
    """Remove tokens ``ACCESS_TOKENS_KEPT_DAYS`` after expiry or revocation; yield batch sizes.

    The function can be stopped at any time and run again. To prevent deadlocks, it skips tokens
    that another transaction has locked, until the next run.
    """
    before = timezone.now() - dt.timedelta(days=settings.ACCESS_TOKENS_KEPT_DAYS)
    tokens = AccessToken.objects.all()
    # Each query uses an index and starts after the previous batch, because deleted entries stay in
    # the index for a while and would be read again.
    yield from _remove(tokens.filter(revoked_at=None, expires_at__lt=before), "expires_at", actor)
    yield from _remove(tokens.filter(revoked_at__lt=before), "id", actor)


def remove_expired_assertions() -> Iterator[int]:
    """Remove expired assertions, which cannot be reused, and yield the size of each batch."""
    expired = UsedAssertion.objects.filter(expires_at__lt=timezone.now())
    yield from remove_in_batches(expired, "expires_at")


def _remove(ended: Any, column: str, actor: Actor) -> Iterator[int]:
    rest = ended
    while True:
        with transaction.atomic():
            batch = rest.order_by(column).select_for_update(skip_locked=True)
            rows = list(batch.values_list("pk", column)[:BATCH])
            if not rows:
                return
            removed, _ = ended.filter(pk__in=[pk for pk, _ in rows]).delete()
            audit.authorize_and_record(
                actor, "access_token.remove", "access_tokens", tokens=removed
            )
        yield removed
        rest = ended.filter((f"{column}__gte", rows[-1][1]))
