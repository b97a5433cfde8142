"""A permission to see how housekeeping goes."""

from django.db import migrations


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [("infra_service", "0001_housekeeping")]

    operations = [
        migrations.AlterModelOptions(
            name="housekeepingpart", options={"default_permissions": ("view",)}
        ),
    ]
