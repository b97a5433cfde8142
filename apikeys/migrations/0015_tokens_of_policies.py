"""Tokens of a trust policy are found by it, and are none that an operator issued."""

from django.db import migrations, models
from django.db.models import Q

from infra_service.database.under_traffic import (
    AddConstraintUnderTraffic,
    AddIndexUnderTraffic,
    RemoveIndexUnderTraffic,
)


class Migration(migrations.Migration):
    safe_while_running = True
    atomic = False

    dependencies = [("apikeys", "0014_federation")]

    operations = [
        AddIndexUnderTraffic(
            model_name="accesstoken",
            index=models.Index(
                fields=["expires_at"],
                name="accesstoken_by_operators",
                condition=Q(api_key=None, revoked_at=None, trust_policy=None),
            ),
        ),
        RemoveIndexUnderTraffic(model_name="accesstoken", name="accesstoken_issued"),
        AddIndexUnderTraffic(
            model_name="accesstoken",
            index=models.Index(
                fields=["trust_policy", "-id"],
                name="accesstoken_of_policy",
                condition=Q(trust_policy__isnull=False),
            ),
        ),
        AddConstraintUnderTraffic(
            model_name="accesstoken",
            constraint=models.CheckConstraint(
                name="accesstoken_exchanged_expires",
                condition=Q(trust_policy=None)
                | Q(api_key=None, expires_at__isnull=False, kind="SERVICE"),
            ),
        ),
    ]
