"""Add the freeze of a state."""

from django.db import migrations, models

from infra_service.lib.database.migration_fields import optional_text


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [("states", "0030_lock_age")]

    operations = [
        migrations.AlterModelOptions(
            "state",
            {
                "permissions": [
                    ("force_unlock_state", "Can force-unlock states"),
                    ("freeze_state", "Can freeze and unfreeze states"),
                    ("restore_state", "Can restore states"),
                    (
                        "download_state",
                        "Can download documents of states, with all secrets in them",
                    ),
                ]
            },
        ),
        migrations.AddField("state", "frozen_at", models.DateTimeField(null=True)),
        migrations.AddField("state", *optional_text("frozen_by", 200)),
        migrations.AddField("state", *optional_text("freeze_reason", 1000)),
        migrations.AddField("state", "freeze_expected_until", models.DateTimeField(null=True)),
    ]
