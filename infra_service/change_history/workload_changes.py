"""Store the changes of workloads in the transaction of their cluster's report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from infra_service.change_history.models import MOST_OF_VALUE, Change, Kind
from infra_service.change_history.recording import ids_at
from infra_service.lib.database.bulk import Writer
from states.fields import first_id
from workloads.history import BATCH, KEPT

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Iterator, Sequence

    from workloads.reporting.deployments import DeploymentChange

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
    """Delete the changes of workloads after the retention of transitions; yield each batch."""
    old = Change.objects.filter(
        kind=Kind.WORKLOAD, occurred_at__lt=now - KEPT, id__lt=first_id(now)
    ).order_by("id")
    while ids := list(old.values_list("pk", flat=True)[:BATCH]):
        yield Change.objects.filter(pk__in=ids).delete()[0]
        old = old.filter(pk__gt=ids[-1])


def _cut(text: str) -> str:
    return text if len(text) <= MOST_OF_VALUE else f"{text[: MOST_OF_VALUE - 1]}…"
