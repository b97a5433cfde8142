"""Indexes for what a bound token sees of the catalogue.

Safe while the service runs: on PostgreSQL they are built and dropped concurrently, which takes no
lock that a read or a write waits for.
"""

from django.db import migrations, models

from infra_service.database.under_traffic import AddIndexUnderTraffic


class Migration(migrations.Migration):
    safe_while_running = True
    atomic = False

    dependencies = [("states", "0010_lists_under_any_filter")]

    operations = [
        AddIndexUnderTraffic(
            model_name="state",
            index=models.Index(
                name=f"state_by_{bound}_{shown}",
                fields=[bound, shown],
                condition=models.Q(deleted_at=None),
            ),
        )
        for bound, shown in (("environment", "component"), ("component", "environment"))
    ]
