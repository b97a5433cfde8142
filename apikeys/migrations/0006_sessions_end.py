"""What ends the sessions of who is made inactive; those who are already are logged out now."""

from django.db import migrations, models
from django.utils import timezone


def log_out_the_inactive(apps, schema_editor):
    users = apps.get_model("apikeys", "User").objects.using(schema_editor.connection.alias)
    users.filter(is_active=False).update(sessions_end=timezone.now())


class Migration(migrations.Migration):
    safe_while_running = "users are few, and only those who are inactive are written"

    dependencies = [("apikeys", "0005_admin_indexes")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="sessions_end",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.RunPython(log_out_the_inactive, migrations.RunPython.noop),
    ]
