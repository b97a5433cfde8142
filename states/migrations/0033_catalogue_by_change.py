"""Indexes for the lists of the catalogue by their last change."""

from django.db import migrations, models

from infra_service.lib.database.under_traffic import AddIndexUnderTraffic


class Migration(migrations.Migration):
    safe_while_running = True
    atomic = False

    dependencies = [("states", "0032_frozen_states")]

    operations = [
        AddIndexUnderTraffic(
            kind, models.Index(name=f"{kind}_by_change", fields=["updated_at", "id"])
        )
        for kind in ("application", "component", "environment")
    ]
