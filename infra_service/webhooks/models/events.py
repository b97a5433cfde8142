"""Published webhook events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import models
from django.utils import timezone

from states.slugs import MOST as MAX_SLUG

if TYPE_CHECKING:
    import datetime as dt
    import uuid

    from apikeys.bindings import Binding


_MAX_CLUSTER_NAME: Final = 200


def _id_of(model: str) -> Any:
    """Return a column with the id of a row that may have been deleted."""
    return models.ForeignKey(
        model, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False,
        related_name="+",
    )  # fmt: skip


def _name(length: int) -> Any:
    return models.CharField(max_length=length, null=True)


class WebhookEvent(models.Model):
    """A published event, the same for all endpoints that receive it.

    The event records its location by id and by name, so that filters and bindings work after rows
    are deleted or renamed.
    """

    # The id of the audit event, or derived from the cause, so that each event is inserted once.
    id = models.UUIDField(primary_key=True, editable=False)
    type = models.CharField(max_length=50)
    # The delivered time. For workload health, it is on the reporter's clock.
    occurred_at = models.DateTimeField()
    # The same time on the service's clock, on which endpoints are created, enabled and disabled.
    # Null if `occurred_at` is already on the service's clock.
    noticed_at = models.DateTimeField(null=True)
    resource_id = models.CharField(max_length=100)
    component = _id_of("states.Component")
    environment = _id_of("states.Environment")
    application = _id_of("states.Application")
    cluster = _id_of("workloads.Cluster")
    # The names at the time of the event, by which endpoints filter.
    component_slug = _name(MAX_SLUG)
    environment_slug = _name(MAX_SLUG)
    application_slug = _name(MAX_SLUG)
    cluster_name = _name(_MAX_CLUSTER_NAME)
    # The owner of an API key. Only this user's endpoints receive the event.
    owner_id: models.UUIDField[uuid.UUID | None, uuid.UUID | None] = models.UUIDField(null=True)
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        default_permissions = ("view",)
        indexes = [models.Index(fields=["created_at"], name="webhookevent_by_age")]

    def __str__(self) -> str:
        return f"{self.type} {self.resource_id}"

    @property
    def observed_at(self) -> dt.datetime:
        """Return the time of the event on the service's clock."""
        return self.noticed_at or self.occurred_at

    def is_inside(self, binding: Binding) -> bool:
        """Return whether an endpoint with this binding may receive the event.

        An event without a location, such as an event of an API key, is outside every binding.
        """
        if binding.cluster_id is not None and self.cluster_id != binding.cluster_id:
            return False
        places = {
            "component_ids": self.component_id,
            "environment_ids": self.environment_id,
            "application_ids": self.application_id,
        }
        return all(ids is None or places[name] in ids for name, ids in binding.lists.items())
