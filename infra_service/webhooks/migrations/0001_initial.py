"""Who is told of events, of which, and what became of it; nothing that is there changes."""

import django.db.models.deletion
import django.db.models.lookups
import django.utils.timezone
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

import apikeys.models.grant_holder


class Migration(migrations.Migration):
    safe_while_running = True
    initial = True

    dependencies = [
        ("apikeys", "0016_trail_in_order_of_commit"),
        ("states", "0020_resources_in_the_admin"),
        ("workloads", "0008_health_of_all_clusters"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
                ("began_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "default_permissions": ("view",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id", 1)), name="trailposition_is_one"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookEndpoint",
            fields=[
                ("name", models.CharField(max_length=200)),
                ("scopes", models.JSONField(default=list)),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("revision", models.PositiveIntegerField(default=0, editable=False)),
                ("bound_cluster_id", models.UUIDField(blank=True, null=True)),
                ("bound_component_ids", models.JSONField(blank=True, null=True)),
                ("bound_environment_ids", models.JSONField(blank=True, null=True)),
                ("bound_application_ids", models.JSONField(blank=True, null=True)),
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
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
                (
                    "updated_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "maker",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="apikeys.apikey",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="webhooks",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "abstract": False,
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
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "application",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="states.application",
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="workloads.cluster",
                    ),
                ),
                (
                    "component",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="states.component",
                    ),
                ),
                (
                    "environment",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="states.environment",
                    ),
                ),
            ],
            options={
                "default_permissions": ("view",),
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
                (
                    "next_attempt_at",
                    models.DateTimeField(default=django.utils.timezone.now, null=True),
                ),
                ("claim", models.UUIDField(null=True)),
                ("last_attempt_at", models.DateTimeField(null=True)),
                ("response_status", models.PositiveSmallIntegerField(null=True)),
                ("error", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="webhooks.webhookendpoint",
                    ),
                ),
                (
                    "event",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="deliveries",
                        to="webhooks.webhookevent",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "default_permissions": ("view",),
            },
        ),
        migrations.AddIndex(
            model_name="webhookendpoint",
            index=models.Index(fields=["owner", "id"], name="webhookendpoint_of_owner"),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("name", ""), _negated=True), name="webhookendpoint_name_present"
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("scopes", []), _negated=True),
                name="webhookendpoint_scopes_present",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("expires_at", None),
                    ("expires_at__gt", models.F("created_at")),
                    _connector="OR",
                ),
                name="webhookendpoint_expires_after_creation",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("bound_cluster_id", None),
                    models.Q(
                        ("bound_component_ids__isnull", True),
                        ("bound_environment_ids__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="webhookendpoint_bound_one_way",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("bound_component_ids__isnull", True),
                        models.Q(
                            django.db.models.lookups.GreaterThanOrEqual(
                                apikeys.models.grant_holder.JsonArrayLength("bound_component_ids"),
                                1,
                            ),
                            django.db.models.lookups.LessThanOrEqual(
                                apikeys.models.grant_holder.JsonArrayLength("bound_component_ids"),
                                1000,
                            ),
                        ),
                        _connector="OR",
                    ),
                    models.Q(
                        ("bound_environment_ids__isnull", True),
                        models.Q(
                            django.db.models.lookups.GreaterThanOrEqual(
                                apikeys.models.grant_holder.JsonArrayLength(
                                    "bound_environment_ids"
                                ),
                                1,
                            ),
                            django.db.models.lookups.LessThanOrEqual(
                                apikeys.models.grant_holder.JsonArrayLength(
                                    "bound_environment_ids"
                                ),
                                1000,
                            ),
                        ),
                        _connector="OR",
                    ),
                ),
                name="webhookendpoint_bound_to_so_many",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("bound_application_ids__isnull", True),
                        models.Q(
                            django.db.models.lookups.GreaterThanOrEqual(
                                apikeys.models.grant_holder.JsonArrayLength(
                                    "bound_application_ids"
                                ),
                                1,
                            ),
                            django.db.models.lookups.LessThanOrEqual(
                                apikeys.models.grant_holder.JsonArrayLength(
                                    "bound_application_ids"
                                ),
                                1000,
                            ),
                        ),
                        _connector="OR",
                    ),
                    models.Q(
                        ("bound_application_ids__isnull", True),
                        ("bound_component_ids__isnull", False),
                        _connector="OR",
                    ),
                ),
                name="webhookendpoint_bound_to_applications",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("url__startswith", "https://"), ("url__startswith", "http://"), _connector="OR"
                ),
                name="webhookendpoint_url_form",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("event_types", []), _negated=True),
                name="webhookendpoint_event_types_present",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("retired_secret", None), ("retired_secret_until", None)),
                    models.Q(
                        ("retired_secret__isnull", False), ("retired_secret_until__isnull", False)
                    ),
                    _connector="OR",
                ),
                name="webhookendpoint_retired_secret_ends",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("disabled_at", None), ("disabled_reason", "")),
                    models.Q(
                        ("disabled_at__isnull", False),
                        models.Q(("disabled_reason", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="webhookendpoint_disabled_for_a_reason",
            ),
        ),
        migrations.AddIndex(
            model_name="webhookevent",
            index=models.Index(fields=["created_at"], name="webhookevent_by_age"),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(fields=["endpoint", "-id"], name="delivery_of_endpoint"),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("status", "WAITING")),
                fields=["next_attempt_at", "id"],
                name="delivery_due",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("status", "WAITING")),
                fields=["endpoint", "resource_id", "id"],
                name="delivery_in_order",
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(fields=("endpoint", "event"), name="delivery_once"),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("next_attempt_at__isnull", False), ("status", "WAITING")),
                    models.Q(("next_attempt_at", None), ("status__in", ["DELIVERED", "FAILED"])),
                    _connector="OR",
                ),
                name="delivery_waits_for_a_time",
            ),
        ),
    ]
