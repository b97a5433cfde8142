"""Store the changes of workloads in the transaction of their cluster's report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from infra_service.change_history.models import MOST_OF_VALUE, Change, Kind
from infra_service.change_history.recording import ids_at
from infra_service.lib.database.bulk import Writer
from states.fields import last_id
from workloads.history import KEPT, remove_in_batches

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
    before = now - KEPT
    # The bound of the id ends the scan of the index, which has no time.
    old = Change.objects.filter(kind=Kind.WORKLOAD, occurred_at__lt=before, id__lte=last_id(before))
    yield from remove_in_batches(old, "id")


def _cut(text: str) -> str:
    return text if len(text) <= MOST_OF_VALUE else f"{text[: MOST_OF_VALUE - 1]}…"
