"""Networks of the grant that a webhook has from its maker; nothing reads them yet."""

from django.db import migrations, models
from django.db.models import Q
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual

from apikeys.models import JsonArrayLength

_COLUMN = "allowed_networks"
_LENGTH = JsonArrayLength(_COLUMN)


class Migration(migrations.Migration):
    safe_while_running = "it adds a column to a table of few rows"

    dependencies = [("webhooks", "0004_place_and_time_of_events")]

    operations = [
        migrations.AddField(
            model_name="webhookendpoint",
            name=_COLUMN,
            field=models.JSONField(null=True, blank=True),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                name="webhookendpoint_networks_so_many",
                condition=Q((f"{_COLUMN}__isnull", True))
                | (Q(GreaterThanOrEqual(_LENGTH, 1)) & Q(LessThanOrEqual(_LENGTH, 50))),
            ),
        ),
    ]
