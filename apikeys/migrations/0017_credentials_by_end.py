"""The index of what ends has also the order of the lists by end; it replaces the one without ids.

Safe while the service runs: on PostgreSQL it is built and dropped concurrently, and the release
before reads the one as it read the other.
"""

from django.db import migrations, models
from django.db.models import Q

from infra_service.database.under_traffic import AddIndexUnderTraffic, RemoveIndexUnderTraffic


class Migration(migrations.Migration):
    safe_while_running = True

    atomic = False

    dependencies = [("apikeys", "0016_trail_in_order_of_commit")]

    operations = [
        *(
            AddIndexUnderTraffic(
                model_name=model,
                index=models.Index(
                    fields=["expires_at", "id"],
                    name=f"{model}_by_end",
                    condition=Q(revoked_at=None, expires_at__isnull=False),
                ),
            )
            for model in ("apikey", "accesstoken")
        ),
        *(
            RemoveIndexUnderTraffic(model_name=model, name=f"{model}_by_expiry")
            for model in ("apikey", "accesstoken")
        ),
    ]
