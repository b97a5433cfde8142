"""Clusters do without a revision. The column stays: the release before reads it.

The release after this one drops it.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [("workloads", "0005_usage_pace")]

    operations = [
        migrations.SeparateDatabaseAndState(
            # The default is for this release, which does not know the column.
            database_operations=[
                migrations.AlterField(
                    model_name="cluster",
                    name="revision",
                    field=models.PositiveIntegerField(db_default=0, default=0),
                ),
            ],
            state_operations=[migrations.RemoveField(model_name="cluster", name="revision")],
        ),
    ]
