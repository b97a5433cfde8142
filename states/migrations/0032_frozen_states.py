"""Index the frozen states, which are few."""

from django.db import migrations, models
from django.db.models import Q

from infra_service.lib.database.under_traffic import AddIndexUnderTraffic


class Migration(migrations.Migration):
    safe_while_running = True
    atomic = False

    dependencies = [("states", "0031_freezes")]

    operations = [
        AddIndexUnderTraffic(
            "state",
            models.Index(
                name="state_frozen",
                fields=["id"],
                condition=Q(deleted_at=None, frozen_at__isnull=False),
            ),
        ),
    ]
