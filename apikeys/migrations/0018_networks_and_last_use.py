"""Networks that limit a credential, the address of its last use, and an index by last use.

The release before this one ignores the networks: a key that is limited works from everywhere there.
"""

from django.db import migrations, models
from django.db.models import Q
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual

from apikeys.models import JsonArrayLength
from infra_service.database.under_traffic import AddConstraintUnderTraffic, AddIndexUnderTraffic

_COLUMN = "allowed_networks"
_LENGTH = JsonArrayLength(_COLUMN)
_CREDENTIALS = ("apikey", "accesstoken")
_MODELS = (*_CREDENTIALS, "trustpolicy")


class Migration(migrations.Migration):
    safe_while_running = True
    atomic = False

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
        *(
            AddIndexUnderTraffic(
                model_name=model,
                index=models.Index(
                    fields=["created_by", "last_used_at", "id"], name=f"{model}_by_use"
                ),
            )
            for model in _CREDENTIALS
        ),
        *(
            AddConstraintUnderTraffic(
                model_name=model,
                constraint=models.CheckConstraint(
                    name=f"{model}_networks_so_many",
                    condition=Q((f"{_COLUMN}__isnull", True))
                    | (Q(GreaterThanOrEqual(_LENGTH, 1)) & Q(LessThanOrEqual(_LENGTH, 50))),
                ),
            )
            for model in _MODELS
        ),
    ]
