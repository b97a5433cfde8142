"""Tables for webhook endpoints, events and deliveries."""

from django.conf import settings
from django.db import migrations, models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.utils import timezone

from apikeys.migrations._grants import grant_constraints
from infra_service.lib.database.migration_fields import unindexed_key, uuid7_id

_REPLACED = """
0001_initial 0002_failed_deliveries 0003_health_positions 0004_place_and_time_of_events
0005_networks
"""


class Migration(migrations.Migration):
    initial = True

    replaces = [("webhooks", name) for name in _REPLACED.split()]

    dependencies = [
        ("apikeys", "0001_squashed_0019_order_and_limit_of_networks"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("states", "0001_squashed_0029_slug_claims"),
        ("workloads", "0001_squashed_0014_moment_of_receipt"),
    ]

    operations = [
        migrations.CreateModel(
            name="HealthPosition",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="workloads.cluster",
                    ),
                ),
                ("told_until", models.DateTimeField()),
            ],
            options={"default_permissions": ("view",)},
        ),
        migrations.CreateModel(
            name="TrailPosition",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        default=1, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("transaction_id", models.BigIntegerField(null=True)),
                ("event_id", models.UUIDField(null=True)),
                ("began_at", models.DateTimeField(default=timezone.now)),
            ],
            options={
                "default_permissions": ("view",),
                "constraints": [CheckConstraint(name="trailposition_is_one", condition=Q(id=1))],
            },
        ),
        migrations.CreateModel(
            name="WebhookEndpoint",
            fields=[
                ("name", models.CharField(max_length=200)),
                ("scopes", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(default=timezone.now, editable=False)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("revision", models.PositiveIntegerField(default=0, editable=False)),
                ("bound_cluster_id", models.UUIDField(blank=True, null=True)),
                ("bound_component_ids", models.JSONField(blank=True, null=True)),
                ("bound_environment_ids", models.JSONField(blank=True, null=True)),
                ("bound_application_ids", models.JSONField(blank=True, null=True)),
                uuid7_id(),
                ("url", models.CharField(max_length=2000)),
                ("event_types", models.JSONField(default=list)),
                ("filter", models.CharField(blank=True, max_length=1024)),
                (
                    "format",
                    models.CharField(
                        choices=[
                            ("standard", "Standard Webhooks"),
                            ("slack", "Slack's incoming webhooks"),
                        ],
                        default="standard",
                        max_length=10,
                    ),
                ),
                ("secret", models.BinaryField()),
                ("encryption_key", models.CharField(max_length=16)),
                ("retired_secret", models.BinaryField(null=True)),
                ("retired_encryption_key", models.CharField(blank=True, max_length=16)),
                ("retired_secret_until", models.DateTimeField(null=True)),
                ("disabled_at", models.DateTimeField(editable=False, null=True)),
                ("disabled_reason", models.CharField(blank=True, max_length=20)),
                ("maker_token_id", models.CharField(blank=True, default="", max_length=40)),
                ("updated_at", models.DateTimeField(default=timezone.now, editable=False)),
                unindexed_key(
                    "maker", "apikeys.apikey", models.PROTECT, related_name="+", null=True
                ),
                unindexed_key(
                    "owner", settings.AUTH_USER_MODEL, models.PROTECT, related_name="webhooks"
                ),
                ("allowed_networks", models.JSONField(blank=True, null=True)),
            ],
            options={
                "verbose_name": "webhook endpoint",
                "indexes": [Index(name="webhookendpoint_of_owner", fields=["owner", "id"])],
                "constraints": [
                    *grant_constraints("webhookendpoint"),
                    CheckConstraint(
                        name="webhookendpoint_url_form",
                        condition=Q(url__startswith="https://") | Q(url__startswith="http://"),
                    ),
                    CheckConstraint(
                        name="webhookendpoint_event_types_present", condition=~Q(event_types=[])
                    ),
                    CheckConstraint(
                        name="webhookendpoint_retired_secret_ends",
                        condition=Q(retired_secret=None, retired_secret_until=None)
                        | Q(retired_secret__isnull=False, retired_secret_until__isnull=False),
                    ),
                    CheckConstraint(
                        name="webhookendpoint_disabled_for_a_reason",
                        condition=Q(disabled_at=None, disabled_reason="")
                        | Q(disabled_at__isnull=False) & ~Q(disabled_reason=""),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DisabledPeriod",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("began_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                unindexed_key(
                    "endpoint",
                    "webhooks.webhookendpoint",
                    models.CASCADE,
                    related_name="+",
                    db_constraint=False,
                ),
            ],
            options={
                "default_permissions": ("view",),
                "indexes": [
                    Index(name="disabledperiod_of_endpoint", fields=["endpoint", "ended_at"]),
                    Index(name="disabledperiod_by_age", fields=["ended_at"]),
                ],
                "constraints": [
                    CheckConstraint(
                        name="disabledperiod_ends_after_it_began",
                        condition=Q(ended_at__gt=F("began_at")),
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookEvent",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("type", models.CharField(max_length=50)),
                ("occurred_at", models.DateTimeField()),
                ("resource_id", models.CharField(max_length=100)),
                ("owner_id", models.UUIDField(null=True)),
                ("data", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(default=timezone.now)),
                unindexed_key(
                    "application",
                    "states.application",
                    models.DO_NOTHING,
                    related_name="+",
                    null=True,
                    db_constraint=False,
                ),
                unindexed_key(
                    "cluster",
                    "workloads.cluster",
                    models.DO_NOTHING,
                    related_name="+",
                    null=True,
                    db_constraint=False,
                ),
                unindexed_key(
                    "component",
                    "states.component",
                    models.DO_NOTHING,
                    related_name="+",
                    null=True,
                    db_constraint=False,
                ),
                unindexed_key(
                    "environment",
                    "states.environment",
                    models.DO_NOTHING,
                    related_name="+",
                    null=True,
                    db_constraint=False,
                ),
                ("application_slug", models.CharField(max_length=63, null=True)),
                ("cluster_name", models.CharField(max_length=200, null=True)),
                ("component_slug", models.CharField(max_length=63, null=True)),
                ("environment_slug", models.CharField(max_length=63, null=True)),
                ("noticed_at", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": ("view",),
                "indexes": [Index(name="webhookevent_by_age", fields=["created_at"])],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("resource_id", models.CharField(max_length=100)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("WAITING", "Waiting"),
                            ("DELIVERED", "Delivered"),
                            ("FAILED", "Failed"),
                        ],
                        default="WAITING",
                        max_length=9,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField(default=timezone.now, null=True)),
                ("claim", models.UUIDField(null=True)),
                ("last_attempt_at", models.DateTimeField(null=True)),
                ("response_status", models.PositiveSmallIntegerField(null=True)),
                ("error", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(default=timezone.now)),
                unindexed_key(
                    "endpoint",
                    "webhooks.webhookendpoint",
                    models.CASCADE,
                    related_name="deliveries",
                ),
                (
                    "event",
                    models.ForeignKey(
                        on_delete=models.PROTECT,
                        related_name="deliveries",
                        to="webhooks.webhookevent",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "default_permissions": ("view",),
                "indexes": [
                    Index(name="delivery_of_endpoint", fields=["endpoint", "-id"]),
                    Index(
                        name="delivery_due",
                        fields=["next_attempt_at", "id"],
                        condition=Q(status="WAITING"),
                    ),
                    Index(
                        name="delivery_in_order",
                        fields=["endpoint", "resource_id", "id"],
                        condition=Q(status="WAITING"),
                    ),
                    Index(name="delivery_failed", fields=["-id"], condition=Q(status="FAILED")),
                ],
                "constraints": [
                    UniqueConstraint(name="delivery_once", fields=("endpoint", "event")),
                    CheckConstraint(
                        name="delivery_waits_for_a_time",
                        condition=Q(next_attempt_at__isnull=False, status="WAITING")
                        | Q(next_attempt_at=None, status__in=["DELIVERED", "FAILED"]),
                    ),
                ],
            },
        ),
    ]
