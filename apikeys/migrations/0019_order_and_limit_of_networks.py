"""An index of credentials by their last use, and the limit of their networks."""

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

    dependencies = [("apikeys", "0018_networks_and_last_use")]

    operations = [
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
