"""The origins of imported versions."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from django.db import models

from infra_service.lib.database.bounded_pages.selecting import ColumnOf

if TYPE_CHECKING:
    import datetime as dt

    from django.db.models import QuerySet


class ImportedVersion(models.Model):
    """Metadata of an imported version from its source: id, time and author.

    The unique digest prevents a second import of the same version.
    """

    version = models.OneToOneField(
        "states.StateVersion", on_delete=models.CASCADE, primary_key=True, related_name="imported"
    )
    source = models.TextField()
    key = models.TextField()
    source_version = models.TextField()
    # A digest of the three columns, which are too long for an index.
    digest = models.CharField(max_length=64)
    created_at: models.DateTimeField[dt.datetime | None, dt.datetime | None] = models.DateTimeField(
        null=True
    )
    created_by = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(name="importedversion_digest", fields=["digest"])]

    def __str__(self) -> str:
        return f"{self.source} {self.key} {self.source_version}"

    @staticmethod
    def digest_of(source: str, key: str, source_version: str) -> str:
        """Return the digest that identifies a version in a source."""
        text = "\0".join((source, key, source_version))
        return hashlib.sha256(text.encode()).hexdigest()


def with_imported(versions: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate imported versions with the metadata from their sources."""
    found: QuerySet[Any] = versions.annotate(
        imported_source=ColumnOf(ImportedVersion, "id", "source"),
        imported_created_at=ColumnOf(ImportedVersion, "id", "created_at"),
        imported_created_by=ColumnOf(ImportedVersion, "id", "created_by"),
    )
    return found
