"""Changes of resources and workloads, in a single table, so that a list reads a single index.

The changes of resources are derived from the versions of states, and can be rebuilt. The changes of
workloads are stored together with the report of their cluster.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final, Self

from django.db import models
from django.db.models import Q

from infra_service.lib.database.bounded_pages.selecting import ColumnOf
from infra_service.lib.database.months import first_id
from states.document.resource_changes import ResourceAction
from states.fields import CreatedAtField, IdAt
from states.models import Component, Environment, State, StateVersion, VersionFacts
from states.models.of_state import OfStateQuerySet
from states.models.resources import MOST_BYTES
from workloads.kubernetes.facts import MAX_STATUS_REASON
from workloads.models import Cluster
from workloads.reporting.deployments import DeploymentAction

if TYPE_CHECKING:
    import datetime as dt
    import uuid

    from apikeys.bindings import Binding

#: The action of a version with unknown changes. ``problem`` states the reason.
UNKNOWN: Final = "UNKNOWN"
ACTIONS: Final = tuple(
    dict.fromkeys((*map(str, ResourceAction), UNKNOWN, *map(str, DeploymentAction)))
)
#: The maximum number of characters of the values before and after a change. Longer values are cut.
MOST_OF_VALUE: Final = 500


class Kind(enum.StrEnum):
    """The kind of a changed object."""

    RESOURCE = "RESOURCE"
    WORKLOAD = "WORKLOAD"


KINDS: Final = tuple(map(str, Kind))


def _row_of(model: type[models.Model], on_delete: Any = models.DO_NOTHING, **options: Any) -> Any:
    """Return a foreign key without a database constraint.

    The previous release, which does not know this table, can delete the referenced rows.
    """
    options = {"db_index": False, "related_name": "+", **options}
    return models.ForeignKey(model, on_delete=on_delete, db_constraint=False, **options)


class ChangeQuerySet(OfStateQuerySet["Change"]):
    def inside(self, binding: Binding) -> Self:
        """Return the changes within this binding.

        A binding to states excludes changes of workloads, which have no component or environment.
        """
        if binding.cluster_id is not None:
            return self.filter(cluster_id=binding.cluster_id)
        return super().inside(binding)

    def since(self, moment: dt.datetime) -> Self:
        """Return the changes since a time, to the millisecond.

        The ids contain the time, and each index of this table ends with the id.
        """
        return self.filter(id__gte=first_id(moment))

    def between(self, since: dt.datetime, until: dt.datetime) -> Self:
        """Return the changes of a period, to the millisecond."""
        return self.since(since).filter(id__lt=first_id(until))

    def of_resources(self) -> Self:
        return self.filter(kind=Kind.RESOURCE)

    def with_names(self) -> ChangeQuerySet:
        """Annotate the names of entries and clusters, and the commit and run URL of the version."""
        return self.annotate(
            component_slug=ColumnOf(Component, "component_id", "slug"),
            environment_slug=ColumnOf(Environment, "environment_id", "slug"),
            commit=ColumnOf(VersionFacts, "version_id", "commit"),
            run_url=ColumnOf(VersionFacts, "version_id", "run_url"),
            cluster_name=ColumnOf(Cluster, "cluster_id", "name"),
        )


class Change(models.Model):
    """A change of a resource between two versions, or of a workload between two reports.

    A change of a resource contains no attribute values, and is deleted with its version.
    ``workload_changes`` removes changes of workloads. Ids are UUIDv7 with the time of the version
    or report, so newer changes have greater ids. Within a version or report, the ids are in the
    descending order of addresses.
    """

    #: Columns that sort by bytes, so that a prefix is a range.
    byte_ordered = frozenset({"address", "type", "provider"})

    id: models.UUIDField[uuid.UUID, uuid.UUID] = models.UUIDField(primary_key=True, editable=False)
    kind = models.CharField(
        max_length=10, choices=[(kind, kind) for kind in KINDS], db_default=Kind.RESOURCE.value
    )
    # This field and the following fields are copies from the version, because an index cannot serve
    # a filter through a join.
    occurred_at: models.DateTimeField[dt.datetime, dt.datetime] = CreatedAtField()
    created_by = models.CharField(max_length=200, blank=True)
    token_id = models.CharField(max_length=40, blank=True)
    version = _row_of(StateVersion, models.CASCADE, db_index=True, null=True)
    version_number = models.PositiveIntegerField(null=True)
    state = _row_of(State, null=True)
    component = _row_of(Component, null=True)
    environment = _row_of(Environment, null=True)
    cluster = _row_of(Cluster, null=True)
    workload_id = models.UUIDField(null=True)
    action = models.CharField(max_length=20, choices=[(action, action) for action in ACTIONS])
    # The reason for UNKNOWN, or for the new health.
    problem = models.CharField(max_length=MAX_STATUS_REASON, blank=True)
    # The address of a resource, or the namespace and name of a workload.
    address = models.CharField(max_length=MOST_BYTES, blank=True)
    previous_address = models.CharField(max_length=MOST_BYTES, blank=True)
    type = models.CharField(max_length=MOST_BYTES, blank=True)
    provider = models.CharField(max_length=MOST_BYTES, blank=True)
    # Names of changed attributes, or of the containers with another image.
    attributes = models.JSONField(default=list)
    # The images, number of replicas or health of a workload.
    before = models.CharField(max_length=MOST_OF_VALUE, blank=True, db_default="")
    after = models.CharField(max_length=MOST_OF_VALUE, blank=True, db_default="")

    objects = ChangeQuerySet.as_manager()

    class Meta:
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(
                name="change_action_known",
                condition=Q(action__in=ACTIONS) & (~Q(action=UNKNOWN) | ~Q(problem="")),
            ),
            models.CheckConstraint(
                name="change_of_its_kind",
                condition=Q(
                    kind=Kind.RESOURCE.value,
                    version__isnull=False,
                    state__isnull=False,
                    component__isnull=False,
                    environment__isnull=False,
                    cluster=None,
                    workload_id=None,
                )
                | Q(
                    kind=Kind.WORKLOAD.value,
                    version=None,
                    state=None,
                    component=None,
                    environment=None,
                    cluster__isnull=False,
                    workload_id__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="change_occurred_with_its_id",
                condition=Q(
                    id__gte=IdAt("occurred_at", last=False), id__lte=IdAt("occurred_at", last=True)
                ),
            ),
        ]
        # Each index ends with the order of the list, so that the database never sorts a page.
        indexes = [
            models.Index(name=f"change_by_{name}", fields=[name, "-id"])
            for name in (
                "state", "component", "environment", "type", "provider", "address",
                "kind", "cluster", "workload_id",
            )
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.action} {self.address}"


class RecordedState(models.Model):
    """The number of the version up to which the changes of a state are stored."""

    state = models.OneToOneField(
        State, on_delete=models.CASCADE, primary_key=True, db_constraint=False, related_name="+"
    )
    number = models.PositiveIntegerField(default=0)

    class Meta:
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.state_id} #{self.number}"
