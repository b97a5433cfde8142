"""Indexes for lists of workspaces: by the beginning of a name, and by tags."""

from django.db import migrations, models
from django.db.models import Q

from infra_service.lib.database.under_traffic import AddIndexUnderTraffic


class Migration(migrations.Migration):
    safe_while_running = True
    atomic = False

    dependencies = [("states", "0035_engines_and_checks")]

    operations = [
        AddIndexUnderTraffic(
            "component",
            models.Index(
                name="component_by_slug_prefix",
                fields=["slug"],
                opclasses=["varchar_pattern_ops"],
            ),
        ),
        AddIndexUnderTraffic(
            "state",
            models.Index(
                name="state_with_workspace",
                fields=["id"],
                condition=Q(workspace__isnull=False),
            ),
        ),
    ]
