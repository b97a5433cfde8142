"""The resource index: the resource instances in the current versions of all states.

``states.resources.indexing`` fills the index asynchronously from the documents alone, so it can be
rebuilt at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.apps import apps
from django.db import models

from infra_service.lib.database.bounded_pages import NamedBy
from infra_service.lib.database.bounded_pages.selecting import ColumnOf
from infra_service.lib.uuids import uuid7
from states.models.catalogue import Component, Environment
from states.models.dependencies import StateDependency
from states.models.of_state import OfState, OfStateQuerySet
from states.models.resource_counts import StateCount, forget_engine

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence


#: Maximum bytes of an address or a provider. PostgreSQL refuses index rows over 2,704 bytes.
MOST_BYTES: Final = 2_000
MOST_BYTES_OF_MODE: Final = 20
#: Maximum characters by the limits of Kubernetes: a namespace, a slash, and a name.
MOST_OF_OBJECT: Final = 63 + 1 + 253


class ResourceEntryQuerySet(OfStateQuerySet["ResourceEntry"]):
    def with_names(self) -> ResourceEntryQuerySet:
        """Annotate the slugs of the catalogue entries, and the number of the indexed version."""
        state = apps.get_model("states", "State")
        return self.annotate(
            component_slug=ColumnOf(Component, "component_id", "slug"),
            environment_slug=ColumnOf(Environment, "environment_id", "slug"),
            version_number=ColumnOf(state, "state_id", "indexed_number"),
        )

    def identified_by(self, digests: Sequence[uuid.UUID]) -> ResourceEntryQuerySet:
        """Return the resources with any of these digests."""
        having = ResourceDigest.objects.filter(digest__in=digests)
        return self.filter(models.Q(NamedBy(having, "entry_id")))

    def forget(self, state_id: uuid.UUID) -> None:
        """Remove the resources, dependencies and counts of a state."""
        own = self.filter(state_id=state_id)
        ResourceDigest.objects.filter(entry_id__in=own.values("pk")).delete()
        own.delete()
        StateDependency.objects.filter(state_id=state_id).delete()
        forget_engine(state_id)
        StateCount.objects.forget(state_id)


class ResourceEntry(OfState):
    """A resource instance in the current version of a state: its address, without its values."""

    #: Columns ordered by bytes, so that a prefix is a range.
    byte_ordered = frozenset({"address", "module", "type", "name", "provider", "cluster_object"})

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    address = models.CharField(max_length=MOST_BYTES)
    deposed = models.CharField(max_length=MOST_BYTES, blank=True)
    module = models.CharField(max_length=MOST_BYTES, blank=True)
    mode = models.CharField(max_length=MOST_BYTES_OF_MODE)
    type = models.CharField(max_length=MOST_BYTES)
    name = models.CharField(max_length=MOST_BYTES)
    # A number for count, a string for for_each.
    index_key = models.JSONField(null=True)
    provider = models.CharField(max_length=MOST_BYTES, blank=True)
    # The identity in a cluster: the uid of a workload, or the namespace/name of a Helm release. It
    # is not a digest, so that queries can join workloads with resources:
    # docs/adr/0046-workloads-joined-with-states-at-query-time.md. For most resources it is null.
    cluster_object = models.CharField(max_length=MOST_OF_OBJECT, null=True)  # noqa: DJ001 - above

    objects = ResourceEntryQuerySet.as_manager()

    class Meta:
        verbose_name = "resource"
        # Each index ends with the order of the list, so that a page is read without sorting.
        indexes = [
            *(
                models.Index(name=f"resource_by_{name}", fields=[name, "id"])
                for name in (
                    *("state", "component", "environment"),
                    *("address", "module", "type", "name", "provider"),
                )
            ),
            # Only for the few resources with an identity in a cluster.
            models.Index(
                name="resource_by_cluster_object",
                fields=["cluster_object"],
                condition=models.Q(cluster_object__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.address


class ResourceDigest(models.Model):
    """A keyed digest of a value that identifies a resource, for searches."""

    pk = models.CompositePrimaryKey("digest", "entry_id")
    # A UUID field, because PostgreSQL stores its 128 bits in 16 bytes.
    digest = models.UUIDField()
    entry = models.ForeignKey(ResourceEntry, on_delete=models.CASCADE, related_name="digests")

    def __str__(self) -> str:
        return str(self.digest)
