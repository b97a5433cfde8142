"""Up to where changes of health were told, for each cluster; nothing that is there changes."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [
        ("webhooks", "0002_failed_deliveries"),
        ("workloads", "0013_transitions_of_a_cluster"),
    ]

    operations = [
        migrations.CreateModel(
            name="HealthPosition",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="workloads.cluster",
                    ),
                ),
                ("told_until", models.DateTimeField()),
            ],
            options={"default_permissions": ("view",)},
        ),
    ]
