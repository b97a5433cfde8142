"""Detect databases that are too old for the squashed migrations.

Django treats a squashed migration as applied when the database has all migrations that it replaces.
If the database has only some of them, and their files are gone, Django removes the squashed
migration from its plan. ``migrate`` then fails with an internal error, or finds nothing to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from django.db.migrations.loader import MigrationLoader

#: The last commit with the replaced migrations, which upgrades any older database.
LAST_UNSQUASHED: Final = "5cadb4f8"
TOO_OLD: Final = (
    "The database is too old for this release: upgrade it to commit "
    f"{LAST_UNSQUASHED} of this repository first, and then to this release."
)


def is_too_old(loader: MigrationLoader) -> bool:
    """Return whether the database has only some of the migrations that an app has squashed."""
    return any(
        len({key in loader.applied_migrations for key in migration.replaces}) > 1
        for migration in loader.replacements.values()
        # Django itself continues where the replaced files exist, as in other packages.
        if not loader.disk_migrations.keys() & {*migration.replaces}
    )
