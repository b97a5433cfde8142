"""Names and tags of workspaces of the remote backend."""

from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [("states", "0033_catalogue_by_change")]

    operations = [migrations.AddField("state", "workspace", models.JSONField(null=True))]
