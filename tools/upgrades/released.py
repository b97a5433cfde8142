"""Record the schema and the API of a release: ``python -m tools.upgrades.released``.

Tests compare the next release with these files. Run the program at each release, with the settings
of any deployment. ``released.json`` contains the last migration of each app, and for each column
whether the code always fills it or the column is nullable. ``released_api.json`` contains the HTTP
API.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import django
import yaml

from tests.gate import OPENAPI
from tools.upgrades import api

APPS: Final = ("apikeys", "infra_service", "states", "webhooks", "workloads")
FILE: Final = Path(__file__).with_name("released.json")


def released() -> dict[str, Any]:
    """Return the last migrations and the columns of the release."""
    from django.apps import apps
    from django.db.migrations.loader import MigrationLoader

    models = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.app_label in APPS
    ]
    return {
        "migrations": {
            app: name for app, name in MigrationLoader(None).graph.leaf_nodes() if app in APPS
        },
        "columns": {
            model._meta.db_table: {
                field.column: "null" if field.null else "filled"
                for field in model._meta.local_concrete_fields
            }
            for model in sorted(models, key=lambda model: model._meta.db_table)
        },
    }


if __name__ == "__main__":
    django.setup()
    FILE.write_text(json.dumps(released(), indent=1) + "\n")
    api.write(yaml.load(OPENAPI.read_text(), yaml.CSafeLoader))
