"""Join workloads with the resources of states that manage them.

The join happens at query time, so that it reflects the current states and workloads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Exists, Value
from django.db.models.functions import StrIndex

from states.models import ResourceEntry
from workloads.managed import MOST_MANAGING, Join, ManagedBy, objects_of, objects_of_outer

if TYPE_CHECKING:
    from apikeys.bindings import Binding
    from workloads.models import Workload


class StatesManage:
    """Find managing resources in the index of resources."""

    def is_managed(self) -> Exists:
        """Return the condition that a resource of any state manages the workload of a query."""
        return Exists(
            ResourceEntry.objects.filter(
                cluster_object__isnull=False, cluster_object__in=objects_of_outer()
            )
        )

    def managed_by(self, workload: Workload, binding: Binding) -> list[ManagedBy]:
        """Return the resources that manage the workload, from states inside the binding; one query.

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
