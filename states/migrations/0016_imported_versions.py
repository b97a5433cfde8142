import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [("states", "0015_slugs_of_names")]

    operations = [
        migrations.CreateModel(
            name="ImportedVersion",
            fields=[
                (
                    "version",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="imported",
                        serialize=False,
                        to="states.stateversion",
                    ),
                ),
                ("source", models.TextField()),
                ("key", models.TextField()),
                ("source_version", models.TextField()),
                ("digest", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(null=True)),
                ("created_by", models.CharField(blank=True, max_length=200)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(name="importedversion_digest", fields=["digest"])
                ]
            },
        ),
    ]
