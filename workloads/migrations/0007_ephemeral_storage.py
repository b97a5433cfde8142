"""A figure more; none of the rows says anything of it."""

from django.db import migrations, models
from django.db.models import Q

from infra_service.database.under_traffic import (
    AddConstraintUnderTraffic,
    RemoveConstraintUnderTraffic,
)


class Migration(migrations.Migration):
    safe_while_running = True
    atomic = False

    dependencies = [("workloads", "0006_no_cluster_revision")]

    operations = [
        migrations.AddField(
            model_name="workload",
            name="ephemeral_storage_requests_bytes",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        RemoveConstraintUnderTraffic(model_name="workload", name="workload_figures_not_negative"),
        AddConstraintUnderTraffic(
            model_name="workload",
            constraint=models.CheckConstraint(
                condition=Q(
                    ("cpu_limits_millicores__gte", 0),
                    ("cpu_requests_millicores__gte", 0),
                    ("ephemeral_storage_requests_bytes__gte", 0),
                    ("memory_limits_bytes__gte", 0),
                    ("memory_requests_bytes__gte", 0),
                    ("replicas_available__gte", 0),
                    ("replicas_desired__gte", 0),
                    ("replicas_ready__gte", 0),
                    Q(
                        ("cpu_used_millicores", None),
                        ("cpu_used_millicores__gte", 0),
                        _connector="OR",
                    ),
                    Q(
                        ("memory_used_bytes", None),
                        ("memory_used_bytes__gte", 0),
                        _connector="OR",
                    ),
                ),
                name="workload_figures_not_negative",
            ),
        ),
    ]
