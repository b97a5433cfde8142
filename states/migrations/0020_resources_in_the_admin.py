"""What the admin calls a resource; nothing in the database changes."""

from django.db import migrations


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [("states", "0019_due_states")]

    operations = [
        migrations.AlterModelOptions(name="resourceentry", options={"verbose_name": "resource"})
    ]
