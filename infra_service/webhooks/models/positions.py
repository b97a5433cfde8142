"""Read positions of the webhook publishers."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone


class TrailPosition(models.Model):
    """The read position in the audit log, as a single row (see ``audit_reader.py``)."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    # On PostgreSQL, the transaction id of the last event that was read.
    transaction_id = models.BigIntegerField(null=True)
    event_id = models.UUIDField(null=True)
    # Events before this time are not published.
    began_at = models.DateTimeField(default=timezone.now)

    class Meta:
        default_permissions = ("view",)
        constraints = [models.CheckConstraint(name="trailposition_is_one", condition=Q(id=1))]

    def __str__(self) -> str:
        return "the position in the audit log"


class HealthPosition(models.Model):
    """The last published health change of a cluster, on the clock of its reporter.

    ``health_changes.py`` explains the position.
    """

    # Without a constraint, because the cluster may have been deleted meanwhile.
    cluster = models.OneToOneField(
        "workloads.Cluster", on_delete=models.CASCADE, primary_key=True, db_constraint=False,
        related_name="+",
    )  # fmt: skip
    told_until = models.DateTimeField()

    class Meta:
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"the position in the health of {self.pk}"
