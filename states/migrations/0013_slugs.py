import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [("states", "0012_who_took_a_lock")]

    operations = [
        migrations.CreateModel(
            name="FormerSlug",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("kind", models.CharField(max_length=20)),
                ("parent_id", models.UUIDField()),
                ("slug", models.CharField(max_length=63)),
                ("entry_id", models.UUIDField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(name="formerslug", fields=["kind", "parent_id", "slug"])
                ]
            },
        ),
        *(
            migrations.AddField(
                model_name=kind, name="slug", field=models.CharField(max_length=63, null=True)
            )
            for kind in ("application", "component", "environment")
        ),
    ]
