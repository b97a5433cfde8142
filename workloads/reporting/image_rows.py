"""Update the image rows, which are derived from workloads.

The caller has locked the cluster's row, so that the image rows cannot change concurrently.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Exists, OuterRef, TextField
from django.db.models.functions import Cast

from infra_service.lib.database.bulk import NewRow, Writer
from infra_service.lib.database.keyset import beyond
from workloads.kubernetes.images import Image, stored_images
from workloads.models import Cluster, Workload
from workloads.models.images import IMAGE, ClusterImage, WorkloadImage
from workloads.reporting.reports import Place

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator, Sequence

    import msgspec

    #: The containers of a workload, as JSON.
    Containers = str | msgspec.Raw

_BATCH: Final = 1000
_COPIED: Final = ("cluster_id", "health_status", *Place._fields)
_LINKS: Final = Writer(WorkloadImage, ("workload_id", "number", "repository", "digest", *_COPIED))
_REMOVED: Final = Writer(WorkloadImage, ("workload_id",))
_HEALTH: Final = Writer(WorkloadImage, ("workload_id", "health_status"))
_COUNTS: Final = Writer(ClusterImage, ("cluster_id", *IMAGE, "workloads"))


@dataclass(slots=True)
class ImageChanges:
    """The changes of a cluster's image rows, written together with its workloads."""

    #: Workloads with rows to delete, including workloads that get new rows.
    removed: list[Sequence[Any]] = field(default_factory=list)
    links: list[NewRow] = field(default_factory=list)
    #: Workloads in which only the health changed, with the new health.
    turned: list[Sequence[Any]] = field(default_factory=list)
    #: The change in the number of workloads per image.
    counts: Counter[Image] = field(default_factory=Counter)

    def add(self, key: uuid.UUID, copied: Sequence[Any], images: Sequence[Image]) -> None:
        """Add a new workload. ``copied`` contains its cluster, health and place."""
        self._run_by(1, images)
        pairs = {(image.repository, image.digest): None for image in images}
        self.links += [
            _LINKS.new_row((key, number, *pair, *copied)) for number, pair in enumerate(pairs)
        ]

    def remove(self, key: uuid.UUID, images: Sequence[Image]) -> None:
        self.removed.append(_REMOVED.prepare((key,)))
        self._run_by(-1, images)

    def change(
        self,
        key: uuid.UUID,
        copied: Sequence[Any],
        before: tuple[str, Containers],
        containers: Containers,
    ) -> None:
        """Update a workload. ``before`` contains its stored health and containers."""
        health, known = before
        old: list[Image] = []
        new = old
        if containers != known:
            old, new = stored_images(known), stored_images(containers)
        if old != new:
            self.remove(key, old)
            self.add(key, copied, new)
        elif copied[1] != health:
            self.turned.append(_HEALTH.prepare((key, copied[1])))

    def write(self, cluster_id: uuid.UUID, *, anew: bool) -> None:
        """Write the changes without reading rows. ``anew`` means that no rows exist."""
        _REMOVED.delete(self.removed, cluster_id=cluster_id)
        _LINKS.insert(self.links)
        _HEALTH.update(self.turned, cluster_id=cluster_id)
        # Sorted by the key, so that a first snapshot fills the index from the beginning to the end.
        # A generator creates the rows, because the garbage collector would scan a list of rows.
        images = sorted(self.counts)
        more = ((cluster_id, *i, n) for i in images if (n := self.counts[i]) > 0)
        if anew:
            _COUNTS.insert(map(_COUNTS.new_row, more))
        else:
            _COUNTS.add(map(_COUNTS.prepare, more))
        _COUNTS.subtract(
            [_COUNTS.prepare((cluster_id, *i, -n)) for i in images if (n := self.counts[i]) < 0]
        )

    def _run_by(self, more: int, images: Iterable[Image]) -> None:
        for image in images:
            self.counts[image] += more


def remove(cluster_id: uuid.UUID) -> int:
    """Delete the image rows of a cluster, and return their number.

    The counts are deleted last, because ``remove_orphans`` uses them to find remaining rows.
    """
    links, _ = WorkloadImage.objects.filter(cluster_id=cluster_id).delete()
    counts, _ = ClusterImage.objects.filter(cluster_id=cluster_id).delete()
    return links + counts


def remove_orphans() -> Iterator[int]:
    """Delete the image rows of deleted clusters, and yield the number of rows per cluster.

    Such rows remain if a release without images deletes a cluster during an upgrade. The deletion
    can be interrupted and repeated at any time.
    """
    there = Exists(Cluster.objects.filter(pk=OuterRef("cluster_id")))
    removed = ClusterImage.objects.filter(~there).values_list("cluster_id", flat=True).distinct()
    for cluster_id in removed:
        yield remove(cluster_id)


def rebuild(cluster_id: uuid.UUID) -> None:
    """Rebuild the image rows of a cluster from its stored workloads."""
    remove(cluster_id)
    changes = ImageChanges()
    for key, health, *rest, containers in _stored(cluster_id):
        changes.add(key, (cluster_id, health, *rest), stored_images(containers))
    changes.write(cluster_id, anew=True)


def _stored(cluster_id: uuid.UUID) -> Iterable[Sequence[Any]]:
    columns: list[Any] = ["id", "health_status", *Place._fields, Cast("containers", TextField())]
    workloads = Workload.objects.filter(cluster=cluster_id).order_by(*Place._fields)
    rows = rest = workloads.values_list(*columns)
    while page := list(rest[:_BATCH]):
        yield from page
        rest = rows.filter(beyond(Place._fields, page[-1][2:5], rows))
