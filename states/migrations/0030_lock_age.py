"""An index for the list of locked states by the age of their locks."""

from django.db import migrations, models

from infra_service.lib.database.under_traffic import AddIndexUnderTraffic


class Migration(migrations.Migration):
    safe_while_running = True
    atomic = False

    dependencies = [("states", "0001_squashed_0029_slug_claims")]

    operations = [
        AddIndexUnderTraffic(
            "state",
            models.Index(
                name="state_by_lock_age",
                fields=["lock_acquired_at", "id"],
                condition=models.Q(deleted_at=None, lock_acquired_at__isnull=False),
            ),
        )
    ]
