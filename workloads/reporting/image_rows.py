"""The rows that say which images run where, kept beside the workloads.

The caller has the cluster's row locked, so that what is read here is not changed meanwhile.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.db.models import TextField
from django.db.models.functions import Cast
from uuid_utils.compat import uuid7

from infra_service.database.keyset import beyond
from workloads.images import IMAGE, ClusterImage, WorkloadImage
from workloads.kubernetes.images import Image, images_of
from workloads.models import Workload
from workloads.reporting.bulk import Writer, batches
from workloads.reporting.reports import Place

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping, Sequence

    Containers = Sequence[Mapping[str, Any]]

_BATCH: Final = 1000
_COPIED: Final = ("cluster_id", "health_status", *Place._fields)
_LINKS: Final = Writer(WorkloadImage, ("workload_id", "number", "repository", "digest", *_COPIED))
_COUNTS: Final = Writer(ClusterImage, ("id", "cluster_id", *IMAGE, "workloads"))


@dataclass(slots=True)
class ImageChanges:
    """What is to be written of a cluster's images when its workloads are."""

    #: Workloads whose rows go, though some come anew.
    left: list[uuid.UUID] = field(default_factory=list)
    links: list[Sequence[Any]] = field(default_factory=list)
    #: Workloads of which only the health is another one, by that.
    turned: dict[str, list[uuid.UUID]] = field(default_factory=lambda: defaultdict(list))
    #: How many workloads more, or fewer, run an image.
    counts: Counter[Image] = field(default_factory=Counter)

    def add(self, key: uuid.UUID, copied: Sequence[Any], containers: Containers) -> None:
        """Take a workload that is new; ``copied`` is its cluster, health and place."""
        images = images_of(containers)
        self.counts.update(images)
        pairs = dict.fromkeys((image.repository, image.digest) for image in images)
        self.links += [
            _LINKS.prepare((key, number, *pair, *copied)) for number, pair in enumerate(pairs)
        ]

    def leave(self, key: uuid.UUID, containers: Containers) -> None:
        """Take a workload that is gone."""
        self.left.append(key)
        self.counts.subtract(images_of(containers))

    def change(
        self,
        key: uuid.UUID,
        copied: Sequence[Any],
        before: tuple[str, Containers],
        containers: Containers,
    ) -> None:
        """Take a workload that is another one than ``before``, its health and containers."""
        health, known = before
        if containers != known and images_of(containers) != images_of(known):
            self.leave(key, known)
            self.add(key, copied, containers)
        elif copied[1] != health:
            self.turned[copied[1]].append(key)

    def write(self, cluster_id: uuid.UUID) -> None:
        """Write the changes."""
        for keys in batches(self.left, _BATCH):
            WorkloadImage.objects.filter(workload_id__in=keys).delete()
        _LINKS.insert(self.links)
        for health, turned in self.turned.items():
            for keys in batches(turned, _BATCH):
                rows = WorkloadImage.objects.filter(workload_id__in=keys)
                rows.update(health_status=health)
        self._write_counts(cluster_id)

    def _write_counts(self, cluster_id: uuid.UUID) -> None:
        changed = sorted({i.repository for i, count in self.counts.items() if count})
        for repositories in batches(changed, _BATCH):
            rows = ClusterImage.objects.filter(cluster_id=cluster_id, repository__in=repositories)
            wanted = set(repositories)
            counts = Counter({i: n for i, n in self.counts.items() if i.repository in wanted})
            for *image, count in rows.values_list(*IMAGE, "workloads"):
                counts[Image(*image)] += count
            rows.delete()
            _COUNTS.insert(
                [
                    _COUNTS.prepare((uuid7(), cluster_id, *image, count))
                    for image, count in counts.items()
                    if count > 0
                ]
            )


def remove(cluster_id: uuid.UUID) -> None:
    """Remove all that is said of a cluster's images."""
    WorkloadImage.objects.filter(cluster_id=cluster_id).delete()
    ClusterImage.objects.filter(cluster_id=cluster_id).delete()


def rebuild(cluster_id: uuid.UUID) -> None:
    """Make the rows of a cluster's images anew, from its workloads as they are stored."""
    remove(cluster_id)
    changes = ImageChanges()
    for key, health, *rest, containers in _stored(cluster_id):
        changes.add(key, (cluster_id, health, *rest), msgspec.json.decode(containers))
    changes.write(cluster_id)


def _stored(cluster_id: uuid.UUID) -> Iterable[Sequence[Any]]:
    columns: list[Any] = ["id", "health_status", *Place._fields, Cast("containers", TextField())]
    rows = Workload.objects.filter(cluster=cluster_id).order_by(*Place._fields)
    page = list(rows.values_list(*columns)[:_BATCH])
    while page:
        yield from page
        after = rows.filter(beyond(Place._fields, page[-1][2:5], rows))
        page = list(after.values_list(*columns)[:_BATCH])
