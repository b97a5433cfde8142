"""Claim the slug of each entry, so that one table holds the current and the former slugs.

Entries are claimed in batches, each in a transaction of its own; a run that was stopped continues.
"""

from django.db import migrations, transaction

_BATCH = 1000
_NO_PARENT = "00000000-0000-0000-0000-000000000000"


def claim(claims, model):
    """Claim the slugs of all entries of a model that have one."""
    named = model.objects.exclude(slug=None).order_by("pk")
    last = None
    while True:
        rest = named if last is None else named.filter(pk__gt=last)
        with transaction.atomic():
            entries = list(rest.select_for_update()[:_BATCH])
            claims.objects.bulk_create(
                (
                    claims(
                        kind=model._meta.model_name,
                        parent_id=getattr(entry, "application_id", None) or _NO_PARENT,
                        slug=entry.slug,
                        entry_id=entry.pk,
                    )
                    for entry in entries
                ),
                update_conflicts=True,
                unique_fields=["kind", "parent_id", "slug"],
                update_fields=["entry_id"],
            )
        if len(entries) < _BATCH:
            return
        last = entries[-1].pk


def forwards(apps, _schema_editor):
    claims = apps.get_model("states", "SlugClaim")
    for name in ("Application", "Environment", "Component"):
        claim(claims, apps.get_model("states", name))


class Migration(migrations.Migration):
    safe_while_running = (
        "Rows are added 1,000 at a time, each time in a transaction of its own; the release before "
        "reads a row only where no entry has the slug now."
    )
    atomic = False

    dependencies = [("states", "0028_installation")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameModel("FormerSlug", "SlugClaim"),
                migrations.AlterModelTable("SlugClaim", "states_formerslug"),
            ],
        ),
        migrations.RunPython(forwards, migrations.RunPython.noop),
    ]
