"""Changes of deployments that a report causes: images, replicas, health, and their existence."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from django.dispatch import Signal

from workloads.kubernetes.facts import WorkloadKind

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator

    from workloads.reporting.reports import Place

#: Sent in the transaction of a report with ``cluster_id``, ``at`` (the time of the observation) and
#: ``changes``, a list of ``DeploymentChange``. A cluster's first report sends nothing.
deployments_changed = Signal()


class DeploymentAction(enum.StrEnum):
    """The kind of a change of a deployment."""

    ADDED = "ADDED"
    REMOVED = "REMOVED"
    #: Deleted and created again with the same name.
    REPLACED = "REPLACED"
    IMAGE_CHANGED = "IMAGE_CHANGED"
    #: Another number of desired replicas. The nodes determine that of a DaemonSet.
    SCALED = "SCALED"
    HEALTH_CHANGED = "HEALTH_CHANGED"


class DeploymentChange(NamedTuple):
    """A change; ``containers`` are the names of those whose image changed.

    ``before`` and ``after`` are images, a number of replicas, or the health, which ``reason``
    explains.
    """

    workload_id: uuid.UUID
    place: Place
    action: DeploymentAction
    before: str = ""
    after: str = ""
    containers: tuple[str, ...] = ()
    reason: str = ""


class Deployment(NamedTuple):
    """The compared columns of a workload."""

    health_status: str
    status_reason: str
    replicas_desired: int
    #: JSON.
    containers: msgspec.Raw


class _Container(msgspec.Struct, gc=False):
    name: str
    image: str


_CONTAINERS: Final = msgspec.json.Decoder(list[_Container])


def changes_between(
    key: uuid.UUID, place: Place, before: Deployment, after: Deployment
) -> Iterator[DeploymentChange]:
    """Yield the changes between the stored workload and the reported one, each action once."""
    if before.containers != after.containers:
        old, new = _images(before.containers), _images(after.containers)
        names = tuple(name for name in {**old, **new} if old.get(name) != new.get(name))
        if names:
            yield DeploymentChange(
                key,
                place,
                DeploymentAction.IMAGE_CHANGED,
                _written(old, names),
                _written(new, names),
                names,
            )
    old_number, new_number = before.replicas_desired, after.replicas_desired
    if old_number != new_number and place.kind != WorkloadKind.DAEMON_SET:
        numbers = str(old_number), str(new_number)
        yield DeploymentChange(key, place, DeploymentAction.SCALED, *numbers)
    if before.health_status != after.health_status:
        yield DeploymentChange(
            key,
            place,
            DeploymentAction.HEALTH_CHANGED,
            before.health_status,
            after.health_status,
            reason=after.status_reason,
        )


def _written(images: dict[str, str], names: Iterable[str]) -> str:
    """Return the images of these containers, each once."""
    return ", ".join(dict.fromkeys(images[name] for name in names if name in images))


def _images(containers: msgspec.Raw) -> dict[str, str]:
    """Return the image of each container of the template by its name."""
    return {one.name: one.image for one in _CONTAINERS.decode(containers)}
