"""An index on the health of workloads of all clusters, for the list in the admin.

Safe while the service runs: on PostgreSQL it is built concurrently.
"""

from django.db import migrations, models

from infra_service.database.under_traffic import AddIndexUnderTraffic


class Migration(migrations.Migration):
    safe_while_running = True

    atomic = False

    dependencies = [("workloads", "0007_ephemeral_storage")]

    operations = [
        AddIndexUnderTraffic(
            model_name="workload",
            index=models.Index(
                name="workload_of_health",
                fields=["health_status", "cluster", "namespace", "name", "kind"],
            ),
        ),
    ]
