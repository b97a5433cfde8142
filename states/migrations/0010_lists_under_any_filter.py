"""Indexes for the list of states without a filter, which may have deleted ones between them.

Safe while the service runs: on PostgreSQL they are built and dropped concurrently, which takes no
lock that a read or a write waits for.
"""

from django.db import migrations, models

from infra_service.database.under_traffic import AddIndexUnderTraffic


class Migration(migrations.Migration):
    safe_while_running = True

    atomic = False

    dependencies = [("states", "0009_deleted_states")]

    operations = [
        AddIndexUnderTraffic(
            model_name="state",
            index=models.Index(
                name="state_present", fields=["id"], condition=models.Q(deleted_at=None)
            ),
        ),
    ]
