"""Access tokens that ended long ago go; the trail keeps what they were.

API keys stay: there are few, and tokens and other keys name them as their origin.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apikeys import audit
from apikeys.models import AccessToken, UsedAssertion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apikeys.actors import Actor

#: Tokens that go in one transaction: on SQLite everybody who writes waits for it.
BATCH: Final = 500


def remove_ended_tokens(*, actor: Actor) -> Iterator[int]:
    """Remove what ended ``ACCESS_TOKENS_KEPT_DAYS`` ago, and yield how many each batch removed.

    It can be stopped at any moment and run again. A token that somebody changes at this moment is
    left to the next run, so that nobody waits for another in a circle.
    """
    before = timezone.now() - dt.timedelta(days=settings.ACCESS_TOKENS_KEPT_DAYS)
    tokens = AccessToken.objects.all()
    # Each in the order of an index, and each batch behind the one before: what was deleted stays in
    # the index for a while, and must not be walked past again and again.
    yield from _remove(tokens.filter(revoked_at=None, expires_at__lt=before), "expires_at", actor)
    yield from _remove(tokens.filter(revoked_at__lt=before), "id", actor)


def remove_expired_assertions() -> Iterator[int]:
    """Forget assertions that have expired, and could not be used again, and yield how many."""
    expired = UsedAssertion.objects.filter(expires_at__lt=timezone.now())
    while digests := list(expired.order_by("expires_at").values_list("pk", flat=True)[:BATCH]):
        yield UsedAssertion.objects.filter(pk__in=digests).delete()[0]


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
