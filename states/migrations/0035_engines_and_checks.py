"""Add the engine of states, encryption on the client, and failing checks, with their indexes.

The indexer fills the columns of existing states, which its new rules mark for indexing.
"""

from django.db import migrations, models
from django.db.models import Q

from infra_service.lib.database.under_traffic import AddIndexUnderTraffic

_ENGINES = [
    ("TERRAFORM", "Terraform"),
    ("OPENTOFU", "OpenTofu"),
    ("MIXED", "Mixed"),
    ("UNKNOWN", "Unknown"),
]
_KINDS = [
    ("provider", "Provider"),
    ("resource_type", "Resource Type"),
    ("terraform_version", "Terraform Version"),
    ("engine", "Engine"),
    ("client_encryption", "Client Encryption"),
]


class Migration(migrations.Migration):
    safe_while_running = True
    atomic = False

    dependencies = [("states", "0034_workspaces")]

    operations = [
        migrations.AddField(
            "state", "engine", models.CharField(choices=_ENGINES, max_length=10, null=True)
        ),
        migrations.AddField("state", "is_client_encrypted", models.BooleanField(null=True)),
        migrations.AddField("state", "failing_checks", models.JSONField(null=True)),
        *(
            AddIndexUnderTraffic(
                "state",
                models.Index(
                    name=name,
                    fields=fields,
                    condition=Q(**{"deleted_at": None, f"{column}__isnull": False}),
                ),
            )
            for name, column, fields in (
                ("state_failing_checks", "failing_checks", ["id"]),
                ("state_client_encrypted", "is_client_encrypted", ["id"]),
                ("state_by_engine", "engine", ["engine", "id"]),
            )
        ),
        # The choices alone: no change of the columns.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model, "kind", models.CharField(choices=_KINDS, max_length=20)
                )
                for model in ("statecount", "counttotal")
            ]
        ),
    ]
