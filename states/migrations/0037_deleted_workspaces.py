"""Names and tags of the workspaces of deleted states."""

from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [("states", "0036_workspace_lists")]

    operations = [migrations.AddField("state", "deleted_workspace", models.JSONField(null=True))]
