"""Who made a key, and when its secret was last rotated."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [("apikeys", "0007_audit_archives")]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="maker",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="made",
                to="apikeys.apikey",
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="maker_token_id",
            field=models.CharField(blank=True, db_default="", default="", max_length=40),
        ),
        migrations.AddField(
            model_name="apikey", name="rotated_at", field=models.DateTimeField(null=True)
        ),
    ]
