from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [("states", "0011_catalogue_of_bound_tokens")]

    operations = [
        migrations.AddField(
            model_name="state", name="lock_taken_by", field=models.JSONField(null=True)
        ),
    ]
