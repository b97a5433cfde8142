"""An index on what could not be delivered, and what the admin calls an endpoint.

Safe while the service runs: on PostgreSQL the index is built concurrently.
"""

from django.db import migrations, models

from infra_service.database.under_traffic import AddIndexUnderTraffic


class Migration(migrations.Migration):
    safe_while_running = True

    atomic = False

    dependencies = [("webhooks", "0001_initial")]

    operations = [
        migrations.AlterModelOptions(
            name="webhookendpoint", options={"verbose_name": "webhook endpoint"}
        ),
        AddIndexUnderTraffic(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("status", "FAILED")), fields=["-id"], name="delivery_failed"
            ),
        ),
    ]
