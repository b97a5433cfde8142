"""Up to where what is told was read."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone


class TrailPosition(models.Model):
    """Up to where the trail has been read for endpoints; there is one row at most.

    ``audit_reader.py`` says why this is enough.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    # On PostgreSQL, of the last event that was read.
    transaction_id = models.BigIntegerField(null=True)
    event_id = models.UUIDField(null=True)
    # What had happened before is told to nobody.
    began_at = models.DateTimeField(default=timezone.now)

    class Meta:
        default_permissions = ("view",)
        constraints = [models.CheckConstraint(name="trailposition_is_one", condition=Q(id=1))]

    def __str__(self) -> str:
        return "the position in the trail"


class HealthPosition(models.Model):
    """Up to where the changes of health in a cluster were told, by its reporter's clock.

    ``health_changes.py`` says why this is enough.
    """

    # Without a constraint: it may have been deleted meanwhile.
    cluster = models.OneToOneField(
        "workloads.Cluster", on_delete=models.CASCADE, primary_key=True, db_constraint=False,
        related_name="+",
    )  # fmt: skip
    told_until = models.DateTimeField()

    class Meta:
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"the position in the health of {self.pk}"
