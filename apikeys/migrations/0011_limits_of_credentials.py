"""Limits and indexes of keys and tokens, of which there may be many."""

from django.db import migrations, models
from django.db.models import Q
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual

from apikeys.models import JsonArrayLength
from infra_service.database.under_traffic import AddConstraintUnderTraffic, AddIndexUnderTraffic


def _so_many(column):
    length = JsonArrayLength(column)
    return Q(
        (f"{column}__isnull", True),
        Q(GreaterThanOrEqual(length, 1), LessThanOrEqual(length, 1000)),
        _connector="OR",
    )


class Migration(migrations.Migration):
    safe_while_running = True
    atomic = False

    dependencies = [("apikeys", "0010_lists_under_any_filter")]

    operations = [
        AddIndexUnderTraffic(
            model_name="apikey",
            index=models.Index(
                condition=Q(("maker__isnull", False), ("revoked_at", None)),
                fields=["maker", "expires_at"],
                name="apikey_by_maker",
            ),
        ),
        AddIndexUnderTraffic(
            model_name="apikey",
            index=models.Index(
                condition=Q(("revoked_at", None), Q(("maker_token_id", ""), _negated=True)),
                fields=["maker_token_id"],
                name="apikey_by_maker_token",
            ),
        ),
        AddIndexUnderTraffic(
            model_name="apikey",
            index=models.Index(
                condition=Q(("revoked_at", None)),
                fields=["created_by", "expires_at"],
                name="apikey_unrevoked_of_owner",
            ),
        ),
        AddConstraintUnderTraffic(
            model_name="apikey",
            constraint=models.CheckConstraint(
                condition=Q(("maker_token_id", ""), ("maker__isnull", False), _connector="OR"),
                name="apikey_maker_token_has_its_key",
            ),
        ),
        *(
            AddConstraintUnderTraffic(
                model_name=model,
                constraint=models.CheckConstraint(
                    condition=_so_many("bound_component_ids") & _so_many("bound_environment_ids"),
                    name=f"{model}_bound_to_so_many",
                ),
            )
            for model in ("accesstoken", "apikey")
        ),
    ]
