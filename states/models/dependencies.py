"""Which states read which: what the current versions say with ``terraform_remote_state``.

Kept with the index of resources (``states.resources.indexing``), and made of nothing but documents.
"""

from __future__ import annotations

from typing import Final

from django.db import models
from uuid_utils.compat import uuid7

from states.models.of_state import OfState, OfStateQuerySet

#: Bytes of an address.
MOST_BYTES: Final = 2_000
MOST_BYTES_OF_BACKEND: Final = 50


class StateDependency(OfState):
    """A data source in the current version of a state, and what it reads.

    What an address of this service named when the state was indexed is in ``target_…``: a name may
    lead elsewhere later, and the state has read what it led to.
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
