"""Which tokens of the service lie in states: a new table, which is safe while the service runs."""

import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [
        ("states", "0020_resources_in_the_admin"),
    ]

    operations = [
        migrations.CreateModel(
            name="LeakedToken",
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
                ("digest", models.BinaryField(max_length=32)),
                ("address", models.TextField(blank=True)),
                ("version_number", models.PositiveIntegerField()),
                ("found_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "state",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="states.state",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("state", "digest"), name="leakedtoken_once")
                ],
            },
        ),
    ]
