"""Indexes on names and namespaces of workloads of all clusters, for their list.

Safe while the service runs: on PostgreSQL they are built concurrently.
"""

from django.db import migrations, models

from infra_service.database.under_traffic import AddIndexUnderTraffic


class Migration(migrations.Migration):
    safe_while_running = True

    atomic = False

    dependencies = [("workloads", "0008_health_of_all_clusters")]

    operations = [
        AddIndexUnderTraffic(
            model_name="workload",
            index=models.Index(
                name="workload_of_namespace",
                fields=["namespace", "health_status", "cluster", "name", "kind"],
            ),
        ),
        AddIndexUnderTraffic(
            model_name="workload",
            index=models.Index(
                name="workload_of_name",
                fields=["name", "health_status", "cluster", "namespace", "kind"],
            ),
        ),
    ]
