"""Answers to requests with an Idempotency-Key; the release before this one ignores the table."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [
        ("infra_service", "0003_housekeeping_of_history"),
    ]

    operations = [
        migrations.CreateModel(
            name="IdempotentRequest",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("fingerprint", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("answer", models.BinaryField(null=True)),
                ("encryption_key", models.CharField(default="", max_length=16)),
                ("answer_until", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["created_at"], name="idempotent_by_age"),
                    models.Index(
                        condition=models.Q(("answer__isnull", False)),
                        fields=["answer_until"],
                        name="idempotent_answers",
                    ),
                ],
            },
        ),
    ]
