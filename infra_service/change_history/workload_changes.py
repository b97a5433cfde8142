"""Store the changes of workloads in the transaction of their cluster's report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count

from infra_service.change_history.models import MOST_OF_VALUE, Change, Kind
from infra_service.change_history.recording import ids_at
from infra_service.lib.database.batches import remove_in_batches
from infra_service.lib.database.bulk import Writer
from states.fields import last_id
from workloads.history import KEPT

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Iterator, Sequence

    from workloads.reporting.deployments import DeploymentChange

#: The maximum number of stored changes per workload.
MOST_CHANGES: Final = 1000
#: The number of workloads per statement that counts changes.
_WORKLOADS: Final = 1000
_MOST_CONTAINERS: Final = 100
_INSERTS: Final = Writer(
    Change,
    (
        "id", "kind", "occurred_at", "cluster", "workload_id", "action", "address", "type",
        "before", "after", "attributes", "problem",
        "created_by", "token_id", "previous_address", "provider",
    ),
)  # fmt: skip
_NO_TEXTS: Final = ("", "", "", "")


def receive(
    *,
    cluster_id: uuid.UUID,
    at: dt.datetime,
    changes: Sequence[DeploymentChange],
    **_signal: Any,
) -> None:
    """Store the changes of a report."""
    _INSERTS.insert(
        _INSERTS.new_row(
            (
                id_,
                Kind.WORKLOAD.value,
                at,
                cluster_id,
                change.workload_id,
                change.action.value,
                f"{change.place.namespace}/{change.place.name}",
                change.place.kind,
                _cut(change.before),
                _cut(change.after),
                list(change.containers[:_MOST_CONTAINERS]),
                change.reason,
                *_NO_TEXTS,
            )
        )
        for id_, change in zip(ids_at(at, len(changes)), changes, strict=True)
    )


def remove_old(now: dt.datetime) -> Iterator[int]:
    """Delete changes of workloads after the retention of transitions, and yield batch sizes."""
    before = now - KEPT
    # The bound on the id limits the scan of the index, which does not contain the time.
    old = Change.objects.filter(kind=Kind.WORKLOAD, occurred_at__lt=before, id__lte=last_id(before))
    yield from remove_in_batches(old, "id")


def remove_surplus() -> Iterator[int]:
    """Delete the oldest changes of workloads beyond ``MOST_CHANGES``, and yield batch sizes.

    A report stores at most a few changes of a workload, so a flapping workload stays near the
    maximum while housekeeping runs each day.
    """
    of_workloads = Change.objects.filter(workload_id__isnull=False).order_by("workload_id")
    numbers = of_workloads.values_list("workload_id").annotate(number=Count("id"))
    rest = numbers
    while page := list(rest[:_WORKLOADS]):
        for workload_id, number in page:
            if number > MOST_CHANGES:
                own = Change.objects.filter(workload_id=workload_id)
                newest_first = own.order_by("-id").values_list("id", flat=True)
                surplus = newest_first[MOST_CHANGES : MOST_CHANGES + 1]
                for last in surplus:  # empty if another process deleted the row
                    yield from remove_in_batches(own.filter(id__lte=last), "id")
        yield 0  # the caller may stop here
        rest = numbers.filter(workload_id__gt=page[-1][0])


def _cut(text: str) -> str:
    return text if len(text) <= MOST_OF_VALUE else f"{text[: MOST_OF_VALUE - 1]}…"
