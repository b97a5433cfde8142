"""What is bound to applications; a release that knows none finds components, and lets none through."""

from django.db import migrations, models
from django.db.models import Q
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual

from apikeys.models import JsonArrayLength
from infra_service.database.under_traffic import AddConstraintUnderTraffic

_COLUMN = "bound_application_ids"
_LENGTH = JsonArrayLength(_COLUMN)
_SO_MANY = Q((f"{_COLUMN}__isnull", True)) | (
    Q(GreaterThanOrEqual(_LENGTH, 1)) & Q(LessThanOrEqual(_LENGTH, 1000))
)
_MODELS = ("apikey", "accesstoken")


class Migration(migrations.Migration):
    safe_while_running = True
    atomic = False

    dependencies = [("apikeys", "0012_issued_tokens")]

    operations = [
        *(
            migrations.AddField(
                model_name=model, name=_COLUMN, field=models.JSONField(null=True, blank=True)
            )
            for model in _MODELS
        ),
        *(
            AddConstraintUnderTraffic(
                model_name=model,
                constraint=models.CheckConstraint(
                    name=f"{model}_bound_to_applications",
                    condition=_SO_MANY
                    & (Q((f"{_COLUMN}__isnull", True)) | Q(bound_component_ids__isnull=False)),
                ),
            )
            for model in _MODELS
        ),
    ]
