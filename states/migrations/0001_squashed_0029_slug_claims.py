"""Tables for the catalogue, states, their versions and the index of resources."""

import uuid

from django.db import migrations, models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.db.models.functions import Length
from django.db.models.lookups import Exact
from django.utils import timezone

import states.fields
from infra_service.lib.database.migration_fields import (
    compare_bytes,
    composite_key,
    optional_text,
    unindexed_key,
    uuid7_id,
)

_SLUG_FORM = Q(slug__regex=r"\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z") & ~Q(
    slug__regex=r"\A[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}\Z"
)
_COUNTED = [
    ("provider", "Provider"),
    ("resource_type", "Resource Type"),
    ("terraform_version", "Terraform Version"),
]

_REPLACED = """
0001_initial 0002_document_storage 0003_list_indexes 0004_catalogue_indexes 0005_statistics
0006_documents_in_an_object_store 0007_admin_permissions 0008_names_in_byte_order
0009_deleted_states 0010_lists_under_any_filter 0011_catalogue_of_bound_tokens
0012_who_took_a_lock 0013_slugs 0014_slugs_are_unique 0015_slugs_of_names
0016_imported_versions 0017_lock_demanded 0018_resources 0019_due_states
0020_resources_in_the_admin 0021_leaked_tokens 0022_index_stamps 0023_version_facts
0024_resource_counts 0025_used_versions 0026_cluster_objects 0027_dependencies
0028_installation 0029_slug_claims
"""

_TEXTS = {
    "states_application": {"name": 200},
    "states_component": {"name": 200},
    "states_environment": {"name": 200},
    "states_resourceentry": {
        **dict.fromkeys(("address", "module", "type", "name", "provider"), 2000),
        "cluster_object": 317,
    },
    "states_statecount": {"value": 2000},
    "states_counttotal": {"value": 2000},
    "states_usedversion": {"source": 1000, "sort_key": 500},
}


def set_storage(_apps, schema_editor):
    for table, columns in _TEXTS.items():
        compare_bytes(schema_editor, table, columns)
    if schema_editor.connection.vendor == "postgresql":
        # Documents are encrypted, so PostgreSQL must not spend time on compressing them.
        schema_editor.execute(
            "ALTER TABLE states_stateversion ALTER COLUMN document SET STORAGE EXTERNAL"
        )
        # With 100 steps the planner overestimates the rows in the long tail of a column.
        ranges = ("serial", "size_bytes", "updated_at")
        changes = ", ".join(f"ALTER COLUMN {name} SET STATISTICS 1000" for name in ranges)
        schema_editor.execute(f"ALTER TABLE states_state {changes}")


def add_identity(apps, _schema_editor):
    """Add the identity of the installation, which backups and exports share."""
    apps.get_model("states", "Installation").objects.create(pk=1)


class Migration(migrations.Migration):
    initial = True

    replaces = [("states", name) for name in _REPLACED.split()]

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Application",
            fields=[
                uuid7_id(),
                ("name", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(default=timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("slug", models.CharField(max_length=63, null=True)),
            ],
            options={
                "indexes": [Index(name="application_by_name", fields=["name", "id"])],
                "constraints": [
                    CheckConstraint(
                        name="application_slug_form", condition=Q(slug=None) | _SLUG_FORM
                    ),
                    UniqueConstraint(
                        name="application_slug", fields=("slug",), condition=Q(slug__isnull=False)
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Component",
            fields=[
                uuid7_id(),
                ("name", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(default=timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                unindexed_key(
                    "application",
                    "states.application",
                    models.PROTECT,
                    related_name="components",
                    null=True,
                    blank=True,
                ),
                ("slug", models.CharField(max_length=63, null=True)),
            ],
            options={
                "indexes": [
                    Index(name="component_by_name", fields=["name", "id"]),
                    Index(name="component_by_application", fields=["application", "id"]),
                    Index(name="component_by_slug", fields=["slug", "id"]),
                ],
                "constraints": [
                    CheckConstraint(
                        name="component_slug_form", condition=Q(slug=None) | _SLUG_FORM
                    ),
                    UniqueConstraint(
                        name="component_slug_in_application",
                        fields=("application", "slug"),
                        condition=Q(slug__isnull=False),
                    ),
                    UniqueConstraint(
                        name="component_slug_without_application",
                        fields=("slug",),
                        condition=Q(("slug__isnull", False), ("application", None)),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Environment",
            fields=[
                uuid7_id(),
                ("name", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(default=timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("slug", models.CharField(max_length=63, null=True)),
                ("require_lock", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "indexes": [Index(name="environment_by_name", fields=["name", "id"])],
                "constraints": [
                    CheckConstraint(
                        name="environment_slug_form",
                        condition=Q(slug=None) | _SLUG_FORM & ~Q(slug__in=["lock"]),
                    ),
                    UniqueConstraint(
                        name="environment_slug", fields=("slug",), condition=Q(slug__isnull=False)
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="State",
            fields=[
                uuid7_id(),
                ("revision", models.PositiveIntegerField(default=0)),
                ("version_number", models.PositiveIntegerField(default=0)),
                ("serial", models.BigIntegerField(null=True)),
                ("lineage", models.CharField(max_length=255, null=True)),
                ("md5", models.CharField(max_length=32, null=True)),
                ("size_bytes", models.BigIntegerField(null=True)),
                ("lock_id", models.UUIDField(null=True)),
                ("lock_info", models.JSONField(null=True)),
                ("lock_acquired_at", models.DateTimeField(null=True)),
                ("created_at", states.fields.CreatedAtField(default=timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(default=timezone.now)),
                ("deleted_at", models.DateTimeField(null=True)),
                unindexed_key(
                    "application", "states.application", models.PROTECT, null=True, blank=True
                ),
                unindexed_key("component", "states.component", models.PROTECT),
                unindexed_key("environment", "states.environment", models.PROTECT),
                ("lock_taken_by", models.JSONField(null=True)),
                ("indexed_number", models.PositiveIntegerField(db_default=0, default=0)),
                optional_text("index_problem", 40),
                optional_text("index_key", 16),
            ],
            options={
                "permissions": [
                    ("force_unlock_state", "Can force-unlock states"),
                    ("restore_state", "Can restore states"),
                    (
                        "download_state",
                        "Can download documents of states, with all secrets in them",
                    ),
                ],
                "indexes": [
                    *(
                        Index(name=f"state_by_{name}", fields=fields, condition=Q(deleted_at=None))
                        for name, fields in {
                            "application": ["application", "id"],
                            "application_env": ["application", "environment", "id"],
                            "environment": ["environment", "id"],
                            "serial": ["serial", "id"],
                            "lineage": ["lineage", "id"],
                            "size": ["size_bytes", "id"],
                            "update": ["updated_at", "id"],
                            "environment_component": ["environment", "component"],
                            "component_environment": ["component", "environment"],
                        }.items()
                    ),
                    Index(name="state_present", fields=["id"], condition=Q(deleted_at=None)),
                    Index(
                        name="state_locked",
                        fields=["id"],
                        condition=Q(deleted_at=None, lock_id__isnull=False),
                    ),
                    Index(
                        name="state_index_due",
                        fields=["id"],
                        condition=Q(deleted_at=None, indexed_number__lt=F("version_number")),
                    ),
                    Index(
                        name="state_by_index_key",
                        fields=["index_key", "id"],
                        condition=Q(deleted_at=None, indexed_number__gte=F("version_number")),
                    ),
                    Index(
                        name="state_unreadable",
                        fields=["id"],
                        condition=Q(deleted_at=None) & ~Q(index_problem=""),
                    ),
                    Index(
                        name="state_deleted", fields=["id"], condition=Q(deleted_at__isnull=False)
                    ),
                ],
                "constraints": [
                    UniqueConstraint(
                        name="state_of_component_and_environment",
                        fields=("component", "environment"),
                    ),
                    CheckConstraint(
                        name="state_lock_whole_or_absent",
                        condition=Q(lock_acquired_at=None, lock_id=None, lock_info=None)
                        | Q(
                            lock_acquired_at__isnull=False,
                            lock_id__isnull=False,
                            lock_info__isnull=False,
                        ),
                    ),
                    CheckConstraint(
                        name="state_created_with_its_id",
                        condition=Q(
                            id__gte=states.fields.IdAt("created_at", last=False),
                            id__lte=states.fields.IdAt("created_at", last=True),
                        ),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="StateVersion",
            fields=[
                uuid7_id(),
                ("number", models.PositiveIntegerField()),
                ("serial", models.BigIntegerField()),
                ("lineage", models.CharField(max_length=255, null=True)),
                ("md5", models.CharField(max_length=32)),
                ("size_bytes", models.BigIntegerField()),
                ("document", models.BinaryField(null=True)),
                ("encryption_key", models.CharField(max_length=16)),
                ("created_at", models.DateTimeField(default=timezone.now)),
                ("created_by", models.CharField(max_length=200)),
                ("token_id", models.CharField(blank=True, max_length=40)),
                unindexed_key("state", "states.state", models.PROTECT, related_name="versions"),
                optional_text("object_name", 100),
            ],
            options={
                "base_manager_name": "objects",
                "indexes": [Index(name="stateversion_by_key", fields=["encryption_key"])],
                "constraints": [
                    UniqueConstraint(name="stateversion_number", fields=("state", "number")),
                    CheckConstraint(
                        name="stateversion_figures",
                        condition=Q(number__gt=0, serial__gte=0, size_bytes__gt=0),
                    ),
                    CheckConstraint(
                        name="stateversion_md5_form", condition=Exact(Length(F("md5")), 32)
                    ),
                    CheckConstraint(
                        name="stateversion_document_in_one_place",
                        condition=Q(document__isnull=False, object_name="")
                        | Q(document=None) & ~Q(object_name=""),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CountTotal",
            fields=[
                composite_key("kind", "value", "environment_id"),
                ("kind", models.CharField(choices=_COUNTED, max_length=20)),
                ("value", models.CharField(max_length=2000)),
                ("states", models.BigIntegerField()),
                ("resources", models.BigIntegerField()),
                ("data_sources", models.BigIntegerField()),
                unindexed_key(
                    "environment",
                    "states.environment",
                    models.DO_NOTHING,
                    related_name="+",
                    db_constraint=False,
                ),
            ],
        ),
        migrations.CreateModel(
            name="ImportedVersion",
            fields=[
                (
                    "version",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="imported",
                        serialize=False,
                        to="states.stateversion",
                    ),
                ),
                ("source", models.TextField()),
                ("key", models.TextField()),
                ("source_version", models.TextField()),
                ("digest", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(null=True)),
                ("created_by", models.CharField(blank=True, max_length=200)),
            ],
            options={
                "constraints": [UniqueConstraint(name="importedversion_digest", fields=("digest",))]
            },
        ),
        migrations.CreateModel(
            name="VersionFacts",
            fields=[
                (
                    "version",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="facts",
                        serialize=False,
                        to="states.stateversion",
                    ),
                ),
                ("commit", models.CharField(blank=True, max_length=200)),
                ("repository", models.CharField(blank=True, max_length=500)),
                ("run", models.CharField(blank=True, max_length=200)),
                ("run_url", models.CharField(blank=True, max_length=2000)),
                ("providers", models.JSONField(default=list)),
                ("modules", models.JSONField(default=list)),
                ("recorded_at", models.DateTimeField(default=timezone.now)),
                ("recorded_by", models.CharField(max_length=200)),
                ("token_id", models.CharField(blank=True, max_length=40)),
            ],
        ),
        migrations.CreateModel(
            name="Installation",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        default=1, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("identity", models.UUIDField(default=uuid.uuid4)),
            ],
            options={
                "default_permissions": ("view",),
                "constraints": [CheckConstraint(name="installation_only_one", condition=Q(id=1))],
            },
        ),
        migrations.CreateModel(
            name="ResourceEntry",
            fields=[
                uuid7_id(),
                ("address", models.CharField(max_length=2000)),
                ("deposed", models.CharField(blank=True, max_length=2000)),
                ("module", models.CharField(blank=True, max_length=2000)),
                ("mode", models.CharField(max_length=20)),
                ("type", models.CharField(max_length=2000)),
                ("name", models.CharField(max_length=2000)),
                ("index_key", models.JSONField(null=True)),
                ("provider", models.CharField(blank=True, max_length=2000)),
                unindexed_key(
                    "component",
                    "states.component",
                    models.DO_NOTHING,
                    related_name="+",
                    db_constraint=False,
                ),
                unindexed_key(
                    "environment",
                    "states.environment",
                    models.DO_NOTHING,
                    related_name="+",
                    db_constraint=False,
                ),
                unindexed_key("state", "states.state", models.CASCADE, related_name="+"),
                ("cluster_object", models.CharField(max_length=317, null=True)),
            ],
            options={
                "verbose_name": "resource",
                "indexes": [
                    Index(name="resource_by_state", fields=["state", "id"]),
                    Index(name="resource_by_component", fields=["component", "id"]),
                    Index(name="resource_by_environment", fields=["environment", "id"]),
                    Index(name="resource_by_address", fields=["address", "id"]),
                    Index(name="resource_by_module", fields=["module", "id"]),
                    Index(name="resource_by_type", fields=["type", "id"]),
                    Index(name="resource_by_name", fields=["name", "id"]),
                    Index(name="resource_by_provider", fields=["provider", "id"]),
                    Index(
                        name="resource_by_cluster_object",
                        fields=["cluster_object"],
                        condition=Q(cluster_object__isnull=False),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ResourceDigest",
            fields=[
                composite_key("digest", "entry_id"),
                ("digest", models.UUIDField()),
                (
                    "entry",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="digests", to="states.resourceentry"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SlugClaim",
            fields=[
                uuid7_id(),
                ("kind", models.CharField(max_length=20)),
                ("parent_id", models.UUIDField()),
                ("slug", models.CharField(max_length=63)),
                ("entry_id", models.UUIDField()),
            ],
            options={
                "db_table": "states_formerslug",
                "constraints": [
                    UniqueConstraint(name="formerslug", fields=("kind", "parent_id", "slug"))
                ],
            },
        ),
        migrations.CreateModel(
            name="LeakedToken",
            fields=[
                uuid7_id(),
                ("digest", models.BinaryField(max_length=32)),
                ("address", models.TextField(blank=True)),
                ("version_number", models.PositiveIntegerField()),
                ("found_at", models.DateTimeField(default=timezone.now)),
                unindexed_key(
                    "state", "states.state", models.CASCADE, related_name="+", db_constraint=False
                ),
            ],
            options={
                "constraints": [
                    UniqueConstraint(name="leakedtoken_once", fields=("state", "digest"))
                ]
            },
        ),
        migrations.CreateModel(
            name="StateCount",
            fields=[
                composite_key("state_id", "kind", "value"),
                ("kind", models.CharField(choices=_COUNTED, max_length=20)),
                ("value", models.CharField(max_length=2000)),
                ("resources", models.BigIntegerField()),
                ("data_sources", models.BigIntegerField()),
                unindexed_key(
                    "component",
                    "states.component",
                    models.DO_NOTHING,
                    related_name="+",
                    db_constraint=False,
                ),
                unindexed_key(
                    "environment",
                    "states.environment",
                    models.DO_NOTHING,
                    related_name="+",
                    db_constraint=False,
                ),
                unindexed_key("state", "states.state", models.CASCADE, related_name="+"),
            ],
            options={
                "indexes": [
                    Index(name="statecount_by_component", fields=["component", "kind", "value"])
                ]
            },
        ),
        migrations.CreateModel(
            name="StateDependency",
            fields=[
                uuid7_id(),
                ("address", models.CharField(max_length=2000)),
                ("backend", models.CharField(blank=True, max_length=50)),
                ("location", models.CharField(blank=True, max_length=2000)),
                ("target_component_id", models.UUIDField(null=True)),
                ("target_environment_id", models.UUIDField(null=True)),
                unindexed_key(
                    "component",
                    "states.component",
                    models.DO_NOTHING,
                    related_name="+",
                    db_constraint=False,
                ),
                unindexed_key(
                    "environment",
                    "states.environment",
                    models.DO_NOTHING,
                    related_name="+",
                    db_constraint=False,
                ),
                unindexed_key("state", "states.state", models.CASCADE, related_name="+"),
            ],
            options={
                "indexes": [
                    Index(name="dependency_by_state", fields=["state", "id"]),
                    Index(
                        name="dependency_by_target",
                        fields=["target_component_id", "target_environment_id", "id"],
                        condition=Q(target_component_id__isnull=False),
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="UsedVersion",
            fields=[
                composite_key("version_id", "kind", "source", "sort_key"),
                (
                    "kind",
                    models.CharField(
                        choices=[("provider", "Provider"), ("module", "Module")], max_length=8
                    ),
                ),
                ("source", models.CharField(max_length=1000)),
                ("sort_key", models.CharField(max_length=500)),
                unindexed_key(
                    "state",
                    "states.state",
                    models.DO_NOTHING,
                    related_name="+",
                    db_constraint=False,
                ),
                unindexed_key(
                    "version",
                    "states.stateversion",
                    models.CASCADE,
                    related_name="+",
                    db_constraint=False,
                ),
            ],
            options={
                "indexes": [
                    Index(
                        name="usedversion_by_source", fields=["kind", "source", "sort_key", "state"]
                    ),
                    Index(name="usedversion_of_state", fields=["state"]),
                ]
            },
        ),
        migrations.AddField(
            model_name="state",
            name="current_version",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=models.PROTECT,
                related_name="+",
                to="states.stateversion",
            ),
        ),
        migrations.AddConstraint(
            model_name="state",
            constraint=CheckConstraint(
                name="state_version_whole_or_absent",
                condition=Q(
                    current_version=None, md5=None, serial=None, size_bytes=None, version_number=0
                )
                | Q(
                    current_version__isnull=False,
                    md5__isnull=False,
                    serial__gte=0,
                    size_bytes__gt=0,
                    version_number__gt=0,
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="state",
            constraint=UniqueConstraint(name="state_current_version", fields=("current_version",)),
        ),
        migrations.RunPython(set_storage),
        migrations.RunPython(add_identity),
    ]
