"""The index by which the states are found that the index of resources is behind of.

Safe while the service runs: on PostgreSQL it is built and dropped concurrently, which takes no lock
that a read or a write waits for.
"""

from django.db import migrations, models

from infra_service.database.under_traffic import AddIndexUnderTraffic


class Migration(migrations.Migration):
    safe_while_running = True
    atomic = False

    dependencies = [("states", "0018_resources")]

    operations = [
        AddIndexUnderTraffic(
            model_name="state",
            index=models.Index(
                name="state_index_due",
                fields=["id"],
                condition=models.Q(deleted_at=None, indexed_number__lt=models.F("version_number")),
            ),
        ),
    ]
