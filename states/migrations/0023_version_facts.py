"""What pipelines say of versions: a new table, which is safe while the service runs."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [
        ("states", "0022_index_stamps"),
    ]

    operations = [
        migrations.CreateModel(
            name="VersionFacts",
            fields=[
                (
                    "version",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="facts",
                        serialize=False,
                        to="states.stateversion",
                    ),
                ),
                ("commit", models.CharField(blank=True, max_length=200)),
                ("repository", models.CharField(blank=True, max_length=500)),
                ("run", models.CharField(blank=True, max_length=200)),
                ("run_url", models.CharField(blank=True, max_length=2000)),
                ("providers", models.JSONField(default=list)),
                ("modules", models.JSONField(default=list)),
                ("recorded_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("recorded_by", models.CharField(max_length=200)),
                ("token_id", models.CharField(blank=True, max_length=40)),
            ],
        ),
    ]
