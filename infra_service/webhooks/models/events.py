"""What happened, as it is told, and who may be told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.utils import timezone

if TYPE_CHECKING:
    import uuid

    from apikeys.bindings import Binding


def _named(model: str) -> Any:
    """Return a column with an id by which a filter finds the name.

    The row may be deleted, and the event is told nevertheless.
    """
    return models.ForeignKey(
        model, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False,
        related_name="+",
    )  # fmt: skip


class WebhookEvent(models.Model):
    """What happened, as it is told: made once, for all endpoints that are told of it."""

    # That of the trail's event, or made of what happened, so that it is entered once.
    id = models.UUIDField(primary_key=True, editable=False)
    type = models.CharField(max_length=50)
    occurred_at = models.DateTimeField()
    resource_id = models.CharField(max_length=100)
    component = _named("states.Component")
    environment = _named("states.Environment")
    application = _named("states.Application")
    cluster = _named("workloads.Cluster")
    # Whose business it is, where it is somebody's own.
    owner_id: models.UUIDField[uuid.UUID | None, uuid.UUID | None] = models.UUIDField(null=True)
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        default_permissions = ("view",)
        indexes = [models.Index(fields=["created_at"], name="webhookevent_by_age")]

    def __str__(self) -> str:
        return f"{self.type} {self.resource_id}"

    def is_inside(self, binding: Binding) -> bool:
        """Whether whoever has this binding may be told of it; what is of no place is outside."""
        if binding.cluster_id is not None and self.cluster_id != binding.cluster_id:
            return False
        places = {
            "component_ids": self.component_id,
            "environment_ids": self.environment_id,
            "application_ids": self.application_id,
        }
        return all(ids is None or places[name] in ids for name, ids in binding.lists.items())
