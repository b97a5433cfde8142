"""The form of slugs, and that each is unique in its parent.

Safe while the service runs: on PostgreSQL indexes are built concurrently, and no row has a slug yet.
"""

from django.db import migrations, models
from django.db.models import Q

from infra_service.database.under_traffic import (
    AddConstraintUnderTraffic,
    AddIndexUnderTraffic,
    AddUniqueUnderTraffic,
)

_FORM = Q(slug__regex=r"\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z") & ~Q(
    slug__regex=r"\A[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}\Z"
)
_HAS_SLUG = Q(slug__isnull=False)


class Migration(migrations.Migration):
    safe_while_running = True
    atomic = False

    dependencies = [("states", "0013_slugs")]

    operations = [
        *(
            AddConstraintUnderTraffic(
                model_name=kind,
                constraint=models.CheckConstraint(
                    name=f"{kind}_slug_form", condition=Q(slug=None) | form
                ),
            )
            for kind, form in {
                "application": _FORM,
                "component": _FORM,
                "environment": _FORM & ~Q(slug__in=["lock"]),
            }.items()
        ),
        *(
            AddUniqueUnderTraffic(
                model_name=kind,
                constraint=models.UniqueConstraint(name=name, fields=fields, condition=condition),
            )
            for kind, name, fields, condition in (
                ("application", "application_slug", ["slug"], _HAS_SLUG),
                ("environment", "environment_slug", ["slug"], _HAS_SLUG),
                (
                    "component",
                    "component_slug_in_application",
                    ["application", "slug"],
                    _HAS_SLUG,
                ),
                (
                    "component",
                    "component_slug_without_application",
                    ["slug"],
                    _HAS_SLUG & Q(application=None),
                ),
            )
        ),
        AddIndexUnderTraffic(
            model_name="component",
            index=models.Index(name="component_by_slug", fields=["slug", "id"]),
        ),
    ]
