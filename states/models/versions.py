"""Versions of states, with their documents or the names of the objects that contain them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Length
from django.db.models.lookups import Exact
from django.utils import timezone

from infra_service.lib.uuids import uuid7
from states.models.states import State

if TYPE_CHECKING:
    import datetime as dt

MAX_SERIAL: Final = 2**63 - 1


class StateVersionManager(models.Manager["StateVersion"]):
    """A manager that does not load documents, so that a list does not read gigabytes."""

    def get_queryset(self) -> models.QuerySet[StateVersion]:
        """Return the versions without their documents."""
        return super().get_queryset().defer("document")


class StateVersion(models.Model):
    """A version of a state, immutable except for the encryption and location of its document."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    state = models.ForeignKey(
        State, on_delete=models.PROTECT, related_name="versions", db_index=False
    )
    number = models.PositiveIntegerField()
    serial = models.BigIntegerField()
    lineage = models.CharField(max_length=255, null=True)  # noqa: DJ001 - a document may have none
    md5 = models.CharField(max_length=32)
    size_bytes = models.BigIntegerField()
    # The document, compressed with gzip and encrypted with AES-256-GCM (document.sealing). It is in
    # the row, or in the object ``object_name`` of the store in STATE_STORAGE_URL.
    # ``encryption_key`` is the name of the key.
    document = models.BinaryField(null=True)
    object_name = models.CharField(max_length=100, blank=True, default="", db_default="")
    encryption_key = models.CharField(max_length=16)
    created_at: models.DateTimeField[dt.datetime, dt.datetime] = models.DateTimeField(
        default=timezone.now
    )
    created_by = models.CharField(max_length=200)
    token_id = models.CharField(max_length=40, blank=True)

    #: Set for imported versions in a queryset of ``with_imported()``.
    imported_source: str | None = None
    imported_created_at: dt.datetime | None = None
    imported_created_by: str | None = None

    objects = StateVersionManager()

    class Meta:
        base_manager_name = "objects"
        constraints = [
            models.UniqueConstraint(name="stateversion_number", fields=["state", "number"]),
            models.CheckConstraint(
                name="stateversion_figures",
                condition=Q(number__gt=0, serial__gte=0, size_bytes__gt=0),
            ),
            models.CheckConstraint(
                name="stateversion_md5_form", condition=Exact(Length(F("md5")), 32)
            ),
            models.CheckConstraint(
                name="stateversion_document_in_one_place",
                condition=Q(document__isnull=False, object_name="")
                | (Q(document=None) & ~Q(object_name="")),
            ),
        ]
        indexes = [models.Index(fields=["encryption_key"], name="stateversion_by_key")]

    def __str__(self) -> str:
        return f"{self.state_id} #{self.number}"
