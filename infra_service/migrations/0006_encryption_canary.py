"""The table of the encryption canary."""

from django.db import migrations, models
from django.db.models import CheckConstraint, Q


class Migration(migrations.Migration):
    dependencies = [("infra_service", "0001_squashed_0005_timelines")]

    safe_while_running = True

    operations = [
        migrations.CreateModel(
            name="EncryptionCanary",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("payload", models.BinaryField()),
                ("encryption_key", models.CharField(max_length=16)),
            ],
            options={
                "default_permissions": ("view",),
                "constraints": [
                    CheckConstraint(name="encryptioncanary_is_single", condition=Q(id=1))
                ],
            },
        ),
    ]
