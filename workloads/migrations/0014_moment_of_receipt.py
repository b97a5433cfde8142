"""When the service received a transition, by its own clock; adds a column."""

from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [
        ("workloads", "0013_transitions_of_a_cluster"),
    ]

    operations = [
        migrations.AddField(
            model_name="transition",
            name="received_at",
            field=models.DateTimeField(null=True),
        ),
    ]
