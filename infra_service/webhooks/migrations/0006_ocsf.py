"""The format ocsf; no statement."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0001_squashed_0005_networks")]

    safe_while_running = "Choices have no statement in the database."

    operations = [
        migrations.AlterField(
            model_name="webhookendpoint",
            name="format",
            field=models.CharField(
                choices=[
                    ("standard", "Standard Webhooks"),
                    ("slack", "Slack's incoming webhooks"),
                    ("ocsf", "OCSF API Activity"),
                ],
                default="standard",
                max_length=10,
            ),
        ),
    ]
