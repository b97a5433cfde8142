"""A column for the encrypted URL; the column ``url`` keeps the scheme and host."""

from django.db import migrations, models
from django.db.models import CheckConstraint, Q


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0006_ocsf")]

    safe_while_running = True

    operations = [
        migrations.AddField(
            model_name="webhookendpoint",
            name="encrypted_url",
            field=models.TextField(blank=True, db_default="", default="", editable=False),
        ),
        # The column and its constraint stay, because the previous release uses them.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint("webhookendpoint", "webhookendpoint_url_form"),
                migrations.AlterField(
                    "webhookendpoint", "url", models.CharField(db_column="url", max_length=2000)
                ),
                migrations.RenameField("webhookendpoint", "url", "stored_url"),
                migrations.AddConstraint(
                    "webhookendpoint",
                    CheckConstraint(
                        name="webhookendpoint_url_form",
                        condition=Q(stored_url__startswith="https://")
                        | Q(stored_url__startswith="http://"),
                    ),
                ),
            ]
        ),
    ]
