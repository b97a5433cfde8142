"""The models of an ordinary state backend, the peer of ``tools.bench.backend``."""

from django.db import models


class NaiveState(models.Model):
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
    state = models.ForeignKey(NaiveState, on_delete=models.PROTECT)
    action = models.CharField(max_length=20)
    document = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "bench"
