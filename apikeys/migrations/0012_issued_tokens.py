"""The tokens that operators issued are found without looking through those that were minted."""

from django.db import migrations, models

from infra_service.database.under_traffic import AddIndexUnderTraffic


class Migration(migrations.Migration):
    safe_while_running = True

    atomic = False

    dependencies = [("apikeys", "0011_limits_of_credentials")]

    operations = [
        AddIndexUnderTraffic(
            model_name="accesstoken",
            index=models.Index(
                fields=["expires_at"],
                name="accesstoken_issued",
                condition=models.Q(("api_key", None), ("revoked_at", None)),
            ),
        ),
    ]
