"""Detect databases that are too old for the squashed migrations.

Django treats a squashed migration as applied when the database has all migrations that it replaces.
When the database has only some, and their files are gone, Django removes the squashed migration
from its plan: ``migrate`` then fails with an internal error, or finds nothing to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from django.db.migrations.loader import MigrationLoader

#: The last commit with the single migrations. It upgrades any older database.
LAST_UNSQUASHED: Final = "5cadb4f8"
TOO_OLD: Final = (
    "The database is too old for this release: upgrade it to commit "
    f"{LAST_UNSQUASHED} of this repository first, and then to this release."
)


def partly_applied(loader: MigrationLoader) -> list[str]:
    """Return the apps whose database has some, but not all, of the squashed migrations."""
    apps = []
    for (app, _name), migration in loader.replacements.items():
        applied = {key in loader.applied_migrations for key in migration.replaces}
        are_gone = not loader.disk_migrations.keys() & {*migration.replaces}
        if are_gone and len(applied) > 1:
            apps.append(app)
    return sorted(apps)
