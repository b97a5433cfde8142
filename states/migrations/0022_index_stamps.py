"""The indexes by which the states are found that are to be indexed again, or cannot be.

Safe while the service runs: on PostgreSQL they are built and dropped concurrently, which takes no
lock that a read or a write waits for.
"""

from django.db import migrations, models

from infra_service.database.under_traffic import AddIndexUnderTraffic

_PRESENT = models.Q(deleted_at=None)


class Migration(migrations.Migration):
    safe_while_running = True
    atomic = False

    dependencies = [("states", "0021_leaked_tokens")]

    operations = [
        AddIndexUnderTraffic(
            model_name="state",
            index=models.Index(
                name="state_by_index_key",
                fields=["index_key", "id"],
                condition=models.Q(deleted_at=None, indexed_number__gte=models.F("version_number")),
            ),
        ),
        AddIndexUnderTraffic(
            model_name="state",
            index=models.Index(
                name="state_unreadable",
                fields=["id"],
                condition=_PRESENT & ~models.Q(index_problem=""),
            ),
        ),
    ]
