"""Networks that limit a credential, and the address of its last use.

The release before this one ignores the networks: a key that is limited works from everywhere there.
"""

from django.db import migrations, models

_COLUMN = "allowed_networks"
_CREDENTIALS = ("apikey", "accesstoken")
_MODELS = (*_CREDENTIALS, "trustpolicy")


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [("apikeys", "0017_credentials_by_end")]

    operations = [
        *(
            migrations.AddField(
                model_name=model, name=_COLUMN, field=models.JSONField(null=True, blank=True)
            )
            for model in _MODELS
        ),
        *(
            migrations.AddField(
                model_name=model,
                name="last_used_address",
                field=models.GenericIPAddressField(null=True, blank=True, editable=False),
            )
            for model in _CREDENTIALS
        ),
    ]
