"""The models of an ordinary state backend, the peer of ``tools.bench.backend``."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class NaiveState(models.Model):
    # The type checker knows the managers of installed apps only.
    objects: ClassVar[models.Manager[NaiveState]]
    component_id = models.UUIDField()
    environment_id = models.UUIDField()
    document = models.JSONField(null=True)
    lock = models.JSONField(null=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        app_label = "bench"
        constraints = [
            models.UniqueConstraint(name="naive_state", fields=["component_id", "environment_id"])
        ]


class NaiveHistory(models.Model):
    objects: ClassVar[models.Manager[NaiveHistory]]
    state = models.ForeignKey(NaiveState, on_delete=models.PROTECT)
    action = models.CharField(max_length=20)
    document = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "bench"
