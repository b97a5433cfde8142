"""Which states read which, kept with the index of resources.

Safe while the service runs: a new table only.
"""

import django.db.models.deletion
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [
        ("states", "0026_cluster_objects"),
    ]

    operations = [
        migrations.CreateModel(
            name="StateDependency",
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
                ("backend", models.CharField(blank=True, max_length=50)),
                ("location", models.CharField(blank=True, max_length=2000)),
                ("target_component_id", models.UUIDField(null=True)),
                ("target_environment_id", models.UUIDField(null=True)),
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
                    models.Index(fields=["state", "id"], name="dependency_by_state"),
                    models.Index(
                        condition=models.Q(("target_component_id__isnull", False)),
                        fields=["target_component_id", "target_environment_id", "id"],
                        name="dependency_by_target",
                    ),
                ],
            },
        ),
    ]
