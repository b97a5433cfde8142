"""The index of resources, and in the row of a state which version is in it.

Safe while the service runs: the columns have constants as defaults, which PostgreSQL adds without
writing a row.
"""

import django.db.models.deletion
import uuid_utils.compat
from django.db import migrations, models

_TEXTS = ("address", "module", "type", "name", "provider")


def in_order_of_bytes(apps, schema_editor):
    """As the names of the catalogue: then an index also finds what begins with a text."""
    if schema_editor.connection.vendor == "postgresql":
        changes = ", ".join(
            f'ALTER COLUMN "{name}" TYPE varchar(2000) COLLATE "C"' for name in _TEXTS
        )
        schema_editor.execute(f"ALTER TABLE states_resourceentry {changes}")


class Migration(migrations.Migration):
    safe_while_running = (
        "The columns that it changes are of a table that it has just made, which is empty."
    )

    dependencies = [("states", "0017_lock_demanded")]

    operations = [
        migrations.AddField(
            model_name="state",
            name="indexed_number",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="state",
            name="index_problem",
            field=models.CharField(blank=True, db_default="", default="", max_length=40),
        ),
        migrations.AddField(
            model_name="state",
            name="index_key",
            field=models.CharField(blank=True, db_default="", default="", max_length=16),
        ),
        migrations.CreateModel(
            name="ResourceEntry",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("address", models.CharField(max_length=2000)),
                ("deposed", models.CharField(blank=True, max_length=2000)),
                ("module", models.CharField(blank=True, max_length=2000)),
                ("mode", models.CharField(max_length=20)),
                ("type", models.CharField(max_length=2000)),
                ("name", models.CharField(max_length=2000)),
                ("index_key", models.JSONField(null=True)),
                ("provider", models.CharField(blank=True, max_length=2000)),
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
                    models.Index(fields=[name, "id"], name=f"resource_by_{name}")
                    for name in ("state", "component", "environment", *_TEXTS)
                ]
            },
        ),
        migrations.CreateModel(
            name="ResourceDigest",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "digest",
                        "entry_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("digest", models.UUIDField()),
                (
                    "entry",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="digests",
                        to="states.resourceentry",
                    ),
                ),
            ],
        ),
        migrations.RunPython(in_order_of_bytes, migrations.RunPython.noop),
    ]
