"""Dependencies between states, from ``terraform_remote_state`` in the current versions.

The resource index (``states.resources.indexing``) derives them from the documents alone.
"""

from __future__ import annotations

from typing import Final

from django.db import models

from infra_service.lib.uuids import uuid7
from states.models.of_state import OfState, OfStateQuerySet

#: Maximum bytes of an address or a location.
MOST_BYTES: Final = 2_000
MOST_BYTES_OF_BACKEND: Final = 50


class StateDependency(OfState):
    """A data source in the current version of a state, and the state that it reads.

    For an address of this service, ``target_…`` are the ids of the state at the time of indexing. A
    name can refer to another state later.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    address = models.CharField(max_length=MOST_BYTES)
    backend = models.CharField(max_length=MOST_BYTES_OF_BACKEND, blank=True)
    location = models.CharField(max_length=MOST_BYTES, blank=True)
    target_component_id = models.UUIDField(null=True)
    target_environment_id = models.UUIDField(null=True)

    objects = OfStateQuerySet["StateDependency"].as_manager()

    class Meta:
        indexes = [
            models.Index(name="dependency_by_state", fields=["state", "id"]),
            models.Index(
                name="dependency_by_target",
                fields=["target_component_id", "target_environment_id", "id"],
                condition=models.Q(target_component_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.address
