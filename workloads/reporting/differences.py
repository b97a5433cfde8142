"""The differences between a report and the stored rows, computed outside a transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.db.models import TextField
from django.db.models.functions import Cast

from infra_service.lib.database.bulk import NewRow, Writer, batches
from infra_service.lib.database.keyset import beyond
from infra_service.lib.uuids import uuid7
from workloads.kubernetes.figures import MEASURED, RESERVED
from workloads.kubernetes.images import images_of, stored_images
from workloads.models import Workload
from workloads.reporting.deployments import (
    Deployment,
    DeploymentAction,
    DeploymentChange,
    changes_between,
)
from workloads.reporting.image_rows import ImageChanges
from workloads.reporting.reports import Place
from workloads.reporting.transitions import Transitions

if TYPE_CHECKING:
    import datetime as dt
    import uuid
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from workloads.kubernetes.records import WorkloadRecord
    from workloads.reporting.reports import Report

# The reported columns of a workload, which are compared. `observed_at` is written but not compared.
_OWN: Final = (
    "health_status", "status_reason", "replicas_desired", "replicas_ready", "replicas_available",
)  # fmt: skip
_USAGE: Final = tuple(figure.name for figure in MEASURED)
_FIGURES: Final = (*(figure.name for figure in RESERVED), *_USAGE)
_COMPARED: Final[tuple[str, ...]] = ("uid", "labels", *_OWN, *_FIGURES, "containers")
_PLAIN: Final = _COMPARED[2:-1]
_own: Final[Callable[[WorkloadRecord], tuple[Any, ...]]] = attrgetter(*_OWN[1:])
_figures: Final[Callable[[Mapping[str, int | None]], tuple[int | None, ...]]] = itemgetter(
    *_FIGURES
)
_HEALTH: Final = slice(2, 4)  # in the compared columns: the status and its reason
_DEPLOYMENT: Final = slice(2, 5)  # also the desired replicas
_MEASURED: Final = _COMPARED.index(_USAGE[0])
_STATUS: Final = _COMPARED.index("health_status")
# Rows read or deleted per statement.
_PAGE: Final = 2000
_DELETED: Final = 1000

_INSERTS: Final = Writer(
    Workload, ("id", "cluster", *Place._fields, *_COMPARED, "observed_at", "health_since")
)
_CHANGES: Final = Writer(Workload, ("id", *_COMPARED, "observed_at"))
_TURNS: Final = Writer(Workload, ("id", *_COMPARED, "observed_at", "health_since"))
# No index contains these columns, so that PostgreSQL can use HOT updates.
_MEASUREMENTS: Final = Writer(Workload, ("id", *_USAGE, "observed_at"))


@dataclass(slots=True)
class Differences:
    """The rows that a report writes. The rows in `measured` differ only in usage.

    The rows in `turned` have a new health or reason. `replaced` counts the rows in `new` that
    replace a workload in `deleted_ids`.
    """

    transitions: Transitions
    deleted_ids: list[uuid.UUID] = field(default_factory=list)
    new: list[NewRow] = field(default_factory=list)
    changed: list[Sequence[Any]] = field(default_factory=list)
    turned: list[Sequence[Any]] = field(default_factory=list)
    measured: list[Sequence[Any]] = field(default_factory=list)
    images: ImageChanges = field(default_factory=ImageChanges)
    deployments: list[DeploymentChange] = field(default_factory=list)
    replaced: int = 0
    unchanged: int = 0

    @property
    def updated(self) -> int:
        """Return the number of changed rows."""
        return len(self.changed) + len(self.turned) + len(self.measured)

    def postpone_usage(self) -> None:
        """Postpone rows that differ only in usage to a later report."""
        self.unchanged += len(self.measured)
        self.measured.clear()

    def any(self) -> bool:
        """Return whether a change may affect the counts by health."""
        return bool(self.deleted_ids or self.new or self.changed or self.turned)

    def is_empty(self) -> bool:
        return not self.any() and not self.measured

    def write(self, cluster_id: uuid.UUID) -> None:
        """Write the differences. The caller's transaction has locked the cluster's row."""
        for keys in batches(self.deleted_ids, _DELETED):
            Workload.objects.filter(cluster=cluster_id, pk__in=keys).delete()
        _INSERTS.insert(self.new)
        _CHANGES.update(self.changed, cluster_id=cluster_id)
        _TURNS.update(self.turned, cluster_id=cluster_id)
        _MEASUREMENTS.update(self.measured, cluster_id=cluster_id)
        self.transitions.write()


def compare(cluster_id: uuid.UUID, report: Report, observed_at: dt.datetime) -> Differences:
    """Compare a report with the stored rows. Changed rows get `observed_at`."""
    found = Differences(transitions := Transitions(cluster_id, observed_at))
    pending = {Place(r.namespace, r.name, r.kind.value): r for r in report.records}

    def new(place: Place, record: WorkloadRecord, action: DeploymentAction) -> NewRow:
        key, values = uuid7(), _reported_values(record, "")
        found.deployments.append(DeploymentChange(key, place, action))
        transitions.appear(key, *values[_HEALTH])
        found.images.add(key, (cluster_id, values[_STATUS], *place), images_of(record.containers))
        return _INSERTS.new_row((key, cluster_id, *place, *values, observed_at, observed_at))

    for key, namespace, name, kind, *stored in _stored(cluster_id, report, pending):
        place = Place(namespace, name, kind)
        record = pending.pop(place, None)
        if record is None or (record.uid and stored[0] and record.uid != stored[0]):
            found.deleted_ids.append(key)
            transitions.disappear(key, _health(stored))
            found.images.remove(key, stored_images(stored[-1]))
            if record is None:
                found.deployments.append(DeploymentChange(key, place, DeploymentAction.REMOVED))
            else:
                # The object was recreated with the same name: it is a different workload with a
                # different id.
                found.new.append(new(place, record, DeploymentAction.REPLACED))
                found.replaced += 1
        elif (values := _reported_values(record, stored[0])) == (known := _known(stored, values)):
            found.unchanged += 1
        elif values[:_MEASURED] == known[:_MEASURED] and values[-1] == known[-1]:
            usage = values[_MEASURED:-1]
            found.measured.append(_MEASUREMENTS.prepare((key, *usage, observed_at)))
        else:
            copied = (cluster_id, values[_STATUS], *place)
            found.deployments += changes_between(
                key, place, _deployment(known), _deployment(values)
            )
            found.images.change(key, copied, (known[_STATUS], known[-1]), values[-1])
            if values[_HEALTH] != known[_HEALTH]:
                found.turned.append(_TURNS.prepare((key, *values, observed_at, observed_at)))
                transitions.change(key, _health(known), *values[_HEALTH])
            else:
                found.changed.append(_CHANGES.prepare((key, *values, observed_at)))
    # Sorted, so that indexes are filled from the beginning to the end.
    found.new += [new(place, pending[place], DeploymentAction.ADDED) for place in sorted(pending)]
    transitions.prepare()
    return found


def _stored(
    cluster_id: uuid.UUID, report: Report, reported: Iterable[Place]
) -> Iterator[Sequence[Any]]:
    """Yield the rows that the report may change: id, place and compared columns.

    The rows are read in pages, so that the comparison does not occupy a connection.
    """
    # As text, because msgspec decodes JSON five times as fast as the ORM's fields.
    texts = (Cast(name, TextField()) for name in ("labels", "containers"))
    values: list[Any] = ["uid", next(texts), *_PLAIN, next(texts)]
    rows = Workload.objects.filter(cluster=cluster_id).values_list("id", *Place._fields, *values)
    if report.complete:
        ordered = rest = rows.order_by(*Place._fields)
        while page := list(rest[:_PAGE]):
            yield from page
            if len(page) < _PAGE:
                return
            rest = ordered.filter(beyond(Place._fields, page[-1][1:4], ordered))
        return
    wanted = {*reported, *report.deleted}
    for places in batches(sorted(wanted), _PAGE):
        # An index covers the namespaces and names. The query may return a few unrelated rows.
        namespaces, names = {p.namespace for p in places}, {p.name for p in places}
        for row in rows.filter(namespace__in=namespaces, name__in=names):
            if Place(*row[1:4]) in wanted:
                yield row
                wanted.discard(Place(*row[1:4]))


def _health(values: Sequence[Any]) -> str:
    health: str = values[_HEALTH][0]
    return health


def _deployment(values: Sequence[Any]) -> Deployment:
    return Deployment._make([*values[_DEPLOYMENT], values[-1]])


def _known(stored: list[Any], values: list[Any]) -> list[Any]:
    """Return the values of a row in the form of the reported values.

    The text of the containers is nearly always equal. If it differs, another release may have
    encoded the same value differently.
    """
    uid, labels, *plain, text = stored
    containers = msgspec.Raw(text)
    if containers != values[-1]:
        containers = msgspec.Raw(msgspec.json.encode(msgspec.json.decode(text)))
    return [uid, msgspec.json.decode(labels), *plain, containers]


def _reported_values(record: WorkloadRecord, stored_uid: str) -> list[Any]:
    """Return the reported values, in the order and form of the columns."""
    return [
        record.uid or stored_uid,
        record.labels,
        record.health_status.value,
        *_own(record),
        *_figures(record.figures),
        msgspec.Raw(msgspec.json.encode(record.containers)),
    ]
