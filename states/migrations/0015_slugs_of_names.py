"""A slug, made of its name, for each application, component and environment that has a name.

It runs while the service does, in batches with a transaction each, and goes on where a run was
stopped. What the release before adds meanwhile has no slug, until it is given one or renamed.
"""

import sys

from django.db import migrations, transaction

from states import slugs

_BATCH = 500
_TOLD = 10_000


def _parent(entry):
    return getattr(entry, "application_id", None)


def _give(model, entries):
    """Give each entry the best slug that nothing else has in its parent."""
    kind = model._meta.model_name
    wanted = {entry.pk: slugs.choices(entry.name, kind, entry.pk) for entry in entries}
    taken = {
        (_parent(entry), entry.slug)
        for entry in model.objects.filter(slug__in={s for of in wanted.values() for s in of})
    }
    for entry in entries:
        entry.slug = next(s for s in wanted[entry.pk] if (_parent(entry), s) not in taken)
        taken.add((_parent(entry), entry.slug))
    model.objects.bulk_update(entries, ["slug"])


def fill(model, tell):
    """Fill the slugs of all entries that have a name and none."""
    nameless = model.objects.exclude(name="").filter(slug=None).order_by("pk")
    total, done, last = nameless.count(), 0, None
    while True:
        with transaction.atomic():
            rest = nameless if last is None else nameless.filter(pk__gt=last)
            entries = list(rest.select_for_update()[:_BATCH])
            if not entries:
                return
            _give(model, entries)
        last = entries[-1].pk
        before, done = done, done + len(entries)
        if before // _TOLD != done // _TOLD or (done >= total > _TOLD):
            tell(f"slugs: {done} of {total} {model._meta.verbose_name_plural}\n")


def forwards(apps, _schema_editor):
    for name in ("Application", "Environment", "Component"):
        fill(apps.get_model("states", name), sys.stderr.write)


class Migration(migrations.Migration):
    safe_while_running = (
        "Rows are changed 500 at a time, each time in a transaction of its own; the release before "
        "does not read what is changed."
    )
    atomic = False

    dependencies = [("states", "0014_slugs_are_unique")]

    operations = [migrations.RunPython(forwards, migrations.RunPython.noop)]
