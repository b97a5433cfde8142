"""The identity of the installation: a new table with one row."""

import uuid

from django.db import migrations, models


def add_identity(apps, schema_editor):
    """So that a backup of today has the identity of the exports of tomorrow."""
    apps.get_model("states", "Installation").objects.get_or_create(pk=1)


class Migration(migrations.Migration):
    safe_while_running = "It adds one row to a table that it has just made."

    dependencies = [
        ("states", "0027_dependencies"),
    ]

    operations = [
        migrations.CreateModel(
            name="Installation",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        default=1, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("identity", models.UUIDField(default=uuid.uuid4)),
            ],
            options={
                "default_permissions": ("view",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id", 1)), name="installation_only_one"
                    )
                ],
            },
        ),
        migrations.RunPython(add_identity, migrations.RunPython.noop),
    ]
