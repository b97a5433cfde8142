"""The queue of deliveries: claim the next deliveries, and record their attempts.

Conditional writes allow several processes to run at once, and any process to be killed at any time.
The ``claim`` of a process reserves a delivery for a minute. If the process is killed between
sending and recording, the claim expires and the message is sent again with the same id.
"""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db import connection, transaction
from django.db.models import F, Max
from django.utils import timezone

from apikeys.actors import Actor
from infra_service.lib.commandline.isolation import process_isolated
from infra_service.lib.database.retries import retrying
from infra_service.webhooks.actions import disable_endpoint
from infra_service.webhooks.models import MAX_ERROR, Delivery
from infra_service.webhooks.subscriptions import reaches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra_service.webhooks.sending import Outcome

#: Pauses between attempts, as in the Standard Webhooks specification: three days in total.
PAUSES: Final = tuple(
    dt.timedelta(seconds=seconds)
    for seconds in (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
)
#: The upper limit for Retry-After.
_MAX_RETRY_AFTER: Final = PAUSES[-1]
_JITTER: Final = 0.1
#: The longest pause between two attempts.
_LONGEST_PAUSE: Final = PAUSES[-1] * (1 + _JITTER)
#: The lifetime of a claim, which is longer than any attempt.
LEASE: Final = dt.timedelta(seconds=60)
#: Rows to read per wanted delivery, because all of the first rows may belong to a single endpoint.
_ROWS_PER_DELIVERY: Final = 8
_RETRY_LATER: Final = frozenset({429, 503})
_GONE: Final = 410


@retrying
def claim(room: Mapping[uuid.UUID, int], most: int) -> list[Delivery]:
    """Claim up to ``most`` due deliveries, within the ``room`` of each endpoint."""
    due = Delivery.objects.due().filter(endpoint_id__in=list(room))
    is_by_row = connection.features.has_select_for_update_skip_locked
    # Do not acquire SQLite's only lock unless deliveries are due.
    if most <= 0 or not room or not (is_by_row or due.exists()):
        return []
    mine = uuid.uuid4()
    with transaction.atomic():
        if is_by_row:
            due = due.select_for_update(skip_locked=True, no_key=True, of=("self",))
        taken: Counter[uuid.UUID] = Counter()
        ids: list[int] = []
        candidates: Any = due.order_by("next_attempt_at", "id").values_list("pk", "endpoint_id")
        for pk, endpoint_id in candidates[: most * _ROWS_PER_DELIVERY]:
            if len(ids) < most and taken[endpoint_id] < room[endpoint_id]:
                taken[endpoint_id] += 1
                ids.append(pk)
        if not ids:
            return []
        until = timezone.now() + LEASE
        Delivery.objects.filter(pk__in=ids).update(claim=mine, next_attempt_at=until)
    claimed: list[Delivery] = []

    def load(some: Sequence[int]) -> None:
        rows = Delivery.objects.filter(pk__in=some, claim=mine).select_related("event")
        claimed.extend(rows.order_by("pk"))

    process_isolated("load a delivery", ids, load)
    return claimed


class Attempt(NamedTuple):
    """An attempt to deliver, and its response."""

    delivery: Delivery
    outcome: Outcome


def note(attempts: Sequence[Attempt]) -> None:
    """Record the outcome of attempts, except for deliveries that another worker has claimed.

    If an outcome cannot be recorded, the delivery is sent again when its claim expires.
    """
    process_isolated("record an attempt", attempts, _record)


@retrying
def _record(attempts: Sequence[Attempt]) -> None:
    now = timezone.now()
    delivered: dict[int | None, list[Delivery]] = defaultdict(list)
    with transaction.atomic():
        for delivery, outcome in attempts:
            if outcome.is_withheld:  # claimed, but not sent
                _claimed(delivery).update(
                    status=Delivery.Status.FAILED, next_attempt_at=None, error=outcome.error
                )
            elif outcome.is_success:
                delivered[outcome.status].append(delivery)
            else:
                _record_failure(delivery, outcome, now)
        for status, deliveries in delivered.items():
            _claimed(*deliveries).update(
                status=Delivery.Status.DELIVERED,
                next_attempt_at=None,
                attempts=F("attempts") + 1,
                last_attempt_at=now,
                response_status=status,
                error="",
            )


def repair_times() -> None:
    """Make deliveries due whose next attempt is from before the clock was set back.

    Each of them would also delay the later deliveries of its resource.
    """
    now = timezone.now()
    invalid = Delivery.objects.waiting().filter(next_attempt_at__gt=now + _LONGEST_PAUSE)
    if invalid.exists():  # do not acquire SQLite's only lock without need
        invalid.update(next_attempt_at=now)


def fail_undeliverable() -> int:
    """Fail the waiting deliveries of expired or disabled endpoints, and return their number.

    The newest waiting delivery is read before the active endpoints. Deliveries of an endpoint that
    is created in between are therefore excluded.
    """
    newest = Delivery.objects.waiting().aggregate(newest=Max("pk"))["newest"]
    if newest is None:
        return 0
    ended = (
        Delivery.objects.waiting().filter(pk__lte=newest).exclude(endpoint_id__in=list(reaches()))
    )
    return ended.update(
        status=Delivery.Status.FAILED,
        next_attempt_at=None,
        error="the webhook is disabled, has expired, or its key or owner is not valid",
    )


def _record_failure(delivery: Delivery, outcome: Outcome, now: dt.datetime) -> None:
    next_at = _next_attempt(delivery.attempts, outcome, now)
    is_recorded = _claimed(delivery).update(
        status=Delivery.Status.FAILED if next_at is None else Delivery.Status.WAITING,
        next_attempt_at=next_at,
        attempts=F("attempts") + 1,
        last_attempt_at=now,
        response_status=outcome.status,
        error=(outcome.error or f"the receiver responded with status {outcome.status}")[:MAX_ERROR],
    )
    if is_recorded and outcome.status == _GONE:
        disable_endpoint(
            endpoint_id=delivery.endpoint_id,
            reason="GONE",
            actor=Actor.of_command("deliver_events"),
        )


def _next_attempt(attempts: int, outcome: Outcome, now: dt.datetime) -> dt.datetime | None:
    """Return the time of the next attempt after this number of attempts, or None after the last."""
    if outcome.status == _GONE or attempts >= len(PAUSES):
        return None
    jitter = random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - jitter, not a secret
    next_at = now + PAUSES[attempts] * jitter
    if outcome.status in _RETRY_LATER and outcome.retry_at is not None:
        next_at = max(next_at, min(outcome.retry_at, now + _MAX_RETRY_AFTER))
    return next_at


def _claimed(*deliveries: Delivery) -> Any:
    ids, claims = {one.pk for one in deliveries}, {one.claim for one in deliveries}
    # A constraint ensures that only waiting deliveries have a time. With a condition on the status,
    # PostgreSQL expects almost no waiting rows and reads all of them instead of these rows by id.
    return Delivery.objects.filter(pk__in=ids, claim__in=claims, next_attempt_at__isnull=False)
