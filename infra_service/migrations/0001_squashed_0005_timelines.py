"""Tables for housekeeping, idempotent requests and timelines."""

from django.db import migrations, models
from django.db.models import Index, Q
from django.utils import timezone

_REPLACED = """
0001_housekeeping 0002_housekeeping_is_shown 0003_housekeeping_of_history
0004_idempotent_requests 0005_timelines
"""

PARTS = ("versions", "objects", "tokens", "events", "sessions", "history")


def add_parts(apps, _schema_editor):
    """Add the parts of housekeeping: the alert on the last success of each counts from now."""
    part = apps.get_model("infra_service", "HousekeepingPart")
    part.objects.bulk_create([part(name=name) for name in PARTS])


class Migration(migrations.Migration):
    initial = True

    replaces = [("infra_service", name) for name in _REPLACED.split()]

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="HousekeepingPart",
            fields=[
                ("name", models.CharField(max_length=30, primary_key=True, serialize=False)),
                ("holder", models.UUIDField(null=True)),
                ("leased_until", models.DateTimeField(null=True)),
                ("succeeded_at", models.DateTimeField(default=timezone.now)),
                ("seconds", models.FloatField(default=0)),
                ("removed", models.PositiveBigIntegerField(default=0)),
            ],
            options={"default_permissions": ("view",)},
        ),
        migrations.CreateModel(
            name="Timeline",
            fields=[
                ("number", models.CharField(max_length=8, primary_key=True, serialize=False)),
                ("mark", models.UUIDField()),
            ],
            options={"default_permissions": ("view",)},
        ),
        migrations.CreateModel(
            name="IdempotentRequest",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("fingerprint", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(default=timezone.now)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("answer", models.BinaryField(null=True)),
                ("encryption_key", models.CharField(default="", max_length=16)),
                ("answer_until", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": ("view",),
                "indexes": [
                    Index(name="idempotent_by_age", fields=["created_at"]),
                    Index(
                        name="idempotent_answers",
                        fields=["answer_until"],
                        condition=Q(answer__isnull=False),
                    ),
                ],
            },
        ),
        migrations.RunPython(add_parts),
    ]
