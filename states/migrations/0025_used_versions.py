"""What states were made with, for filters: a new table, which is safe while the service runs."""

import django.db.models.deletion
from django.db import migrations, models


def in_order_of_bytes(apps, schema_editor):
    """So that sort keys are in the order of their versions, whatever the database's order is."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "ALTER TABLE states_usedversion "
            'ALTER COLUMN source TYPE varchar(1000) COLLATE "C", '
            'ALTER COLUMN sort_key TYPE varchar(500) COLLATE "C"'
        )


class Migration(migrations.Migration):
    safe_while_running = (
        "The columns that it changes are of a table that it has just made, which is empty."
    )

    dependencies = [
        ("states", "0024_resource_counts"),
    ]

    operations = [
        migrations.CreateModel(
            name="UsedVersion",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "version_id",
                        "kind",
                        "source",
                        "sort_key",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("provider", "Provider"), ("module", "Module")], max_length=8
                    ),
                ),
                ("source", models.CharField(max_length=1000)),
                ("sort_key", models.CharField(max_length=500)),
                (
                    "state",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="states.state",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="states.stateversion",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["kind", "source", "sort_key", "state"], name="usedversion_by_source"
                    ),
                    models.Index(fields=["state"], name="usedversion_of_state"),
                ],
            },
        ),
        migrations.RunPython(in_order_of_bytes, migrations.RunPython.noop),
    ]
