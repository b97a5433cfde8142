"""An index on the transitions of a cluster, for those who are told of them.

Safe while the service runs: on PostgreSQL it is built concurrently.
"""

from django.db import migrations, models

from infra_service.database.under_traffic import AddIndexUnderTraffic


class Migration(migrations.Migration):
    safe_while_running = True

    atomic = False

    dependencies = [("workloads", "0011_images")]

    operations = [
        AddIndexUnderTraffic(
            model_name="transition",
            index=models.Index(name="transition_of_cluster", fields=["cluster_id", "at"]),
        ),
    ]
