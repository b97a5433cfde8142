"""What a pipeline says of a version, which no document does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils import timezone

if TYPE_CHECKING:
    import datetime as dt


class VersionFacts(models.Model):
    """What the pipeline said that pushed a version: the last word of it counts.

    ``providers`` and ``modules`` are what is in its files (``states.pipeline``).
    """

    # Without a constraint in the database: a release that does not know the table prunes versions.
    version = models.OneToOneField(
        "states.StateVersion",
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="facts",
        db_constraint=False,
    )
    commit = models.CharField(max_length=200, blank=True)
    repository = models.CharField(max_length=500, blank=True)
    run = models.CharField(max_length=200, blank=True)
    run_url = models.CharField(max_length=2000, blank=True)
    providers = models.JSONField(default=list)
    modules = models.JSONField(default=list)
    recorded_at: models.DateTimeField[dt.datetime, dt.datetime] = models.DateTimeField(
        default=timezone.now
    )
    recorded_by = models.CharField(max_length=200)
    token_id = models.CharField(max_length=40, blank=True)

    def __str__(self) -> str:
        return self.commit or self.run_url or str(self.version_id)
