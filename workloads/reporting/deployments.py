"""The changes of deployments in a report: additions, removals, images, replicas and health."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from django.dispatch import Signal

from workloads.kubernetes.facts import WorkloadKind
from workloads.kubernetes.records import UNREADABLE

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator

    from workloads.reporting.reports import Place

#: The signal that the transaction of a report sends, except for a cluster's first report.
#: Arguments: ``cluster_id``, ``at`` (the time of the observation) and ``changes``
#: (``DeploymentChange``).
deployments_changed = Signal()


class DeploymentAction(enum.StrEnum):
    """The type of a change of a deployment."""

    ADDED = "ADDED"
    REMOVED = "REMOVED"
    #: Deleted and created again with the same name.
    REPLACED = "REPLACED"
    IMAGE_CHANGED = "IMAGE_CHANGED"
    #: The number of desired replicas changed. A DaemonSet, which follows the nodes, is excluded.
    SCALED = "SCALED"
    HEALTH_CHANGED = "HEALTH_CHANGED"


class DeploymentChange(NamedTuple):
    """A change of a deployment. ``containers`` names the containers with a changed image.

    ``before`` and ``after`` are images, numbers of replicas, or health statuses. ``reason`` is the
    reason for the new health.
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
    #: The JSON of the containers.
    containers: msgspec.Raw


class _Container(msgspec.Struct, gc=False):
    name: str
    image: str


_CONTAINERS: Final = msgspec.json.Decoder(list[_Container])


def changes_between(
    key: uuid.UUID, place: Place, before: Deployment, after: Deployment
) -> Iterator[DeploymentChange]:
    """Yield at most one change per action between a stored and a reported workload."""
    # An unreadable workload has no containers and no replicas.
    is_readable = UNREADABLE not in (before.status_reason, after.status_reason)
    if is_readable and before.containers != after.containers:
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
    if is_readable and old_number != new_number and place.kind != WorkloadKind.DAEMON_SET:
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
    """Return the distinct images of these containers as text."""
    return ", ".join(dict.fromkeys(images[name] for name in names if name in images))


def _images(containers: msgspec.Raw) -> dict[str, str]:
    """Return the images in the template by container name."""
    return {one.name: one.image for one in _CONTAINERS.decode(containers)}
