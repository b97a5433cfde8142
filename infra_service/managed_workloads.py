"""Join workloads with the resources of states that manage them.

The join happens at query time, so that it reflects the current states and workloads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    BooleanField,
    Case,
    Exists,
    F,
    Func,
    OuterRef,
    TextField,
    Value,
    When,
)
from django.db.models.functions import StrIndex

from infra_service.lib.database import citus
from states.models import ResourceEntry
from workloads.managed import MOST_MANAGING, Join, ManagedBy, object_columns, objects_of

if TYPE_CHECKING:
    from django.db.models import Expression

    from apikeys.bindings import Binding
    from workloads.models import Workload


class _AnyOf(Func):
    """``column = ANY (texts)``, with the texts in a single parameter."""

    template = "(%(expressions)s))"
    arg_joiner = " = ANY ("
    output_field = BooleanField()

    def __init__(self, column: Expression, texts: list[str | None]) -> None:
        super().__init__(column, Value(texts, output_field=ArrayField(TextField())))


class StatesManage:
    """A search for managing resources in the resource index."""

    def is_managed(self) -> Case | Exists:
        """Return the condition that a resource of any state manages the workload of a query.

        On Citus, a separate query first reads the cluster objects of resources, because workloads
        and resources are on different servers.
        """
        objects = ResourceEntry.objects.filter(cluster_object__isnull=False)
        if not citus.is_used():
            return Exists(objects.filter(cluster_object__in=object_columns(OuterRef)))
        names = list(objects.values_list("cluster_object", flat=True).distinct())
        uid, release = (_AnyOf(column, names) for column in object_columns(F))
        return Case(When(uid, then=True), When(release, then=True), default=False)

    def managed_by(self, workload: Workload, binding: Binding) -> list[ManagedBy]:
        """Return the resources that manage the workload, from states within the binding.

        Resources with the workload's uid come first.
        """
        rows = (
            ResourceEntry.objects.inside(binding)
            .filter(cluster_object__in=objects_of(workload))
            .order_by(StrIndex("cluster_object", Value("/")), "state_id", "address", "pk")
        )
        return [
            ManagedBy(
                state_id=row.state_id,
                component_id=row.component_id,
                environment_id=row.environment_id,
                address=row.address,
                joined_by=(
                    Join.METADATA_UID if row.cluster_object == workload.uid else Join.HELM_RELEASE
                ),
            )
            for row in rows[:MOST_MANAGING]
        ]
