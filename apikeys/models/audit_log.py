"""Audit events and their archives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils import timezone

from infra_service.lib.database.months import lowest_id
from infra_service.lib.uuids import uuid7

if TYPE_CHECKING:
    import datetime as dt
    import uuid


class AuditEventQuerySet(models.QuerySet["AuditEvent"]):
    """A queryset that reads only the necessary partitions."""

    def since(self, moment: dt.datetime) -> AuditEventQuerySet:
        """Return the events since a moment, from the partitions of its month and later months."""
        return self.filter(occurred_at__gte=moment, pk__gte=lowest_id(moment))


class AuditEvent(models.Model):
    """An event of the audit log. A trigger prevents updates and deletions.

    The columns store users and tokens by value, so that the log outlives them.
    """

    #: PostgreSQL partitions the table by id. The ids contain the time of this column.
    time_of_id = "occurred_at"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    occurred_at = models.DateTimeField(default=timezone.now)
    action = models.CharField(max_length=50)
    actor_id: models.UUIDField[uuid.UUID | None, uuid.UUID | None] = models.UUIDField(null=True)
    actor_name = models.CharField(max_length=200)
    token_id = models.CharField(max_length=40, blank=True)
    resource_id = models.CharField(max_length=100)
    address = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    # The request id from the client, if any; several requests may share it.
    client_request_id = models.CharField(max_length=64, blank=True, default="", db_default="")
    details = models.JSONField(default=dict)

    objects = AuditEventQuerySet.as_manager()

    class Meta:
        # Each index ends with the order of the list. AuditEventListView.searched_fields lists the
        # filterable columns without an index.
        indexes = [
            models.Index(fields=["occurred_at", "id"], name="auditevent_by_time"),
            models.Index(fields=["request_id", "occurred_at", "id"], name="auditevent_by_request"),
            models.Index(fields=["resource_id", "occurred_at", "id"], name="auditevent_resource"),
            models.Index(fields=["token_id", "occurred_at", "id"], name="auditevent_by_token"),
            models.Index(fields=["actor_id", "occurred_at", "id"], name="auditevent_by_actor"),
            models.Index(fields=["action", "occurred_at", "id"], name="auditevent_action"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.resource_id}"


class AuditArchive(models.Model):
    """An archive file of audit events. A trigger prevents updates and deletions of the row.

    The row permits the deletion of the events between ``first_id`` and ``last_id``.
    """

    number = models.PositiveIntegerField(primary_key=True)
    # The SHA-256 digest of the last line in hex, which covers all lines of this archive and of all
    # previous archives.
    digest = models.CharField(max_length=64)
    events = models.PositiveIntegerField()
    first_id = models.UUIDField()
    last_id = models.UUIDField()
    archived_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"audit archive {self.number}"
