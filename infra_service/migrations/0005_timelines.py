"""Marks of the timelines of PostgreSQL's log; adds a table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [
        ("infra_service", "0004_idempotent_requests"),
    ]

    operations = [
        migrations.CreateModel(
            name="Timeline",
            fields=[
                ("number", models.CharField(max_length=8, primary_key=True, serialize=False)),
                ("mark", models.UUIDField()),
            ],
            options={
                "default_permissions": ("view",),
            },
        ),
    ]
