"""How many states have what, kept with the index of resources.

Safe while the service runs: new tables only.
"""

import django.db.models.deletion
from django.db import migrations, models


def in_order_of_bytes(apps, schema_editor):
    """Pages are in this order on every database."""
    if schema_editor.connection.vendor == "postgresql":
        for table in ("states_statecount", "states_counttotal"):
            schema_editor.execute(
                f'ALTER TABLE {table} ALTER COLUMN "value" TYPE varchar(2000) COLLATE "C"'
            )


class Migration(migrations.Migration):
    safe_while_running = (
        "The columns that it changes are of tables that it has just made, which are empty."
    )

    dependencies = [
        ("states", "0023_version_facts"),
    ]

    operations = [
        migrations.CreateModel(
            name="CountTotal",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "kind",
                        "value",
                        "environment_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("provider", "Provider"),
                            ("resource_type", "Resource Type"),
                            ("terraform_version", "Terraform Version"),
                        ],
                        max_length=20,
                    ),
                ),
                ("value", models.CharField(max_length=2000)),
                ("states", models.BigIntegerField()),
                ("resources", models.BigIntegerField()),
                ("data_sources", models.BigIntegerField()),
                (
                    "environment",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="states.environment",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="StateCount",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "state_id",
                        "kind",
                        "value",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("provider", "Provider"),
                            ("resource_type", "Resource Type"),
                            ("terraform_version", "Terraform Version"),
                        ],
                        max_length=20,
                    ),
                ),
                ("value", models.CharField(max_length=2000)),
                ("resources", models.BigIntegerField()),
                ("data_sources", models.BigIntegerField()),
                (
                    "component",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="states.component",
                    ),
                ),
                (
                    "environment",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="states.environment",
                    ),
                ),
                (
                    "state",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="states.state",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["component", "kind", "value"], name="statecount_by_component"
                    )
                ],
            },
        ),
        migrations.RunPython(in_order_of_bytes, migrations.RunPython.noop),
    ]
