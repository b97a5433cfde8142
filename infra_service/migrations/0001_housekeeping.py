"""Who does a part of housekeeping, and when it was last done."""

import django.utils.timezone
from django.db import migrations, models

PARTS = ("versions", "objects", "tokens", "events", "sessions")


def set_up(apps, _schema_editor):
    """From now on each should be done: the alert on its last success counts from here."""
    part = apps.get_model("infra_service", "HousekeepingPart")
    part.objects.bulk_create([part(name=name) for name in PARTS])


class Migration(migrations.Migration):
    safe_while_running = "it fills the table that it makes, with five rows"

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="HousekeepingPart",
            fields=[
                ("name", models.CharField(max_length=30, primary_key=True, serialize=False)),
                ("holder", models.UUIDField(null=True)),
                ("leased_until", models.DateTimeField(null=True)),
                ("succeeded_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("seconds", models.FloatField(default=0)),
                ("removed", models.PositiveBigIntegerField(default=0)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.RunPython(set_up, migrations.RunPython.noop),
    ]
