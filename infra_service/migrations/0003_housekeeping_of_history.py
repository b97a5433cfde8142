"""One more part of housekeeping: the history of workloads."""

from django.db import migrations

PART = "history"


def set_up(apps, _schema_editor):
    """From now on it should be done: the alert on its last success counts from here."""
    apps.get_model("infra_service", "HousekeepingPart").objects.get_or_create(name=PART)


def take_back(apps, _schema_editor):
    """The release before does not know the part, and would tell that it is late."""
    apps.get_model("infra_service", "HousekeepingPart").objects.filter(name=PART).delete()


class Migration(migrations.Migration):
    safe_while_running = "it adds one row to a table of six"

    dependencies = [("infra_service", "0002_housekeeping_is_shown")]

    operations = [migrations.RunPython(set_up, take_back)]
