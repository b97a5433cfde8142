"""Where events happened, by name, and when endpoints were disabled; adds columns and a table."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [
        ("webhooks", "0003_health_positions"),
    ]

    operations = [
        migrations.AddField(
            model_name="webhookevent",
            name="application_slug",
            field=models.CharField(max_length=63, null=True),
        ),
        migrations.AddField(
            model_name="webhookevent",
            name="cluster_name",
            field=models.CharField(max_length=200, null=True),
        ),
        migrations.AddField(
            model_name="webhookevent",
            name="component_slug",
            field=models.CharField(max_length=63, null=True),
        ),
        migrations.AddField(
            model_name="webhookevent",
            name="environment_slug",
            field=models.CharField(max_length=63, null=True),
        ),
        migrations.AddField(
            model_name="webhookevent",
            name="noticed_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name="DisabledPeriod",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("began_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="webhooks.webhookendpoint",
                    ),
                ),
            ],
            options={
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        fields=["endpoint", "ended_at"], name="disabledperiod_of_endpoint"
                    ),
                    models.Index(fields=["ended_at"], name="disabledperiod_by_age"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("ended_at__gt", models.F("began_at"))),
                        name="disabledperiod_ends_after_it_began",
                    )
                ],
            },
        ),
    ]
