from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [("states", "0016_imported_versions")]

    operations = [
        migrations.AddField(
            model_name="environment",
            name="require_lock",
            field=models.BooleanField(default=False, db_default=False),
        ),
    ]
