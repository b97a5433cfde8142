"""Issuers, trust policies and used assertions, and which policy a token hangs on."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual

import apikeys.identifiers
import apikeys.models.federation
from apikeys.models import JsonArrayLength


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [("apikeys", "0013_bound_applications")]

    operations = [
        migrations.CreateModel(
            name="Issuer",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=apikeys.identifiers.issuer_id,
                        editable=False,
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("GITHUB", "GitHub Actions"),
                            ("GITLAB", "GitLab"),
                            ("KUBERNETES", "Kubernetes"),
                            ("BUILDKITE", "Buildkite"),
                            ("CIRCLECI", "CircleCI"),
                            ("CUSTOM", "Custom"),
                        ],
                        max_length=10,
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=200)),
                ("url", models.CharField(max_length=500)),
                ("audience", models.CharField(max_length=500)),
                ("inline_keys", models.JSONField(blank=True, null=True)),
                ("jwks_url", models.CharField(blank=True, max_length=500)),
                ("ca", models.TextField(blank=True)),
                (
                    "algorithms",
                    models.JSONField(default=apikeys.models.federation.usual_algorithms),
                ),
                ("max_assertion_seconds", models.PositiveIntegerField(default=3600)),
                ("key_set", models.JSONField(editable=False, null=True)),
                ("key_set_fetched_at", models.DateTimeField(editable=False, null=True)),
                ("key_set_asked_at", models.DateTimeField(editable=False, null=True)),
                ("key_set_settled_at", models.DateTimeField(editable=False, null=True)),
                ("failures", models.PositiveIntegerField(default=0, editable=False)),
                ("revision", models.PositiveIntegerField(default=0, editable=False)),
                ("disabled_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "updated_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id__startswith", "iss-")), name="issuer_id_form"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                [
                                    "GITHUB",
                                    "GITLAB",
                                    "KUBERNETES",
                                    "BUILDKITE",
                                    "CIRCLECI",
                                    "CUSTOM",
                                ],
                            )
                        ),
                        name="issuer_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("url__startswith", "https://"),
                            models.Q(
                                ("inline_keys__isnull", False), models.Q(("url", ""), _negated=True)
                            ),
                            _connector="OR",
                        ),
                        name="issuer_url_is_https",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("jwks_url", ""), ("jwks_url__startswith", "https://"), _connector="OR"
                        ),
                        name="issuer_jwks_url_is_https",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("audience", ""), _negated=True),
                        name="issuer_audience_present",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("inline_keys__isnull", True), ("jwks_url", ""), _connector="OR"
                        ),
                        name="issuer_keys_from_one_place",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_assertion_seconds__gte", 1), ("max_assertion_seconds__lte", 86400)
                        ),
                        name="issuer_assertions_end",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TrustPolicy",
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
                    models.CharField(
                        default=apikeys.identifiers.trust_policy_id,
                        editable=False,
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "issuer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="policies",
                        to="apikeys.issuer",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="trust_policies",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("conditions", models.JSONField(default=list)),
                ("max_token_seconds", models.PositiveIntegerField(default=3600)),
                ("disabled_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("last_run", models.JSONField(editable=False, null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "maker",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="trust_policies",
                        to="apikeys.apikey",
                    ),
                ),
                ("maker_token_id", models.CharField(blank=True, default="", max_length=40)),
                (
                    "updated_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
            ],
            options={
                "verbose_name_plural": "trust policies",
                "abstract": False,
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("name", ""), _negated=True),
                        name="trustpolicy_name_present",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("scopes", []), _negated=True),
                        name="trustpolicy_scopes_present",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("expires_at", None),
                            ("expires_at__gt", models.F("created_at")),
                            _connector="OR",
                        ),
                        name="trustpolicy_expires_after_creation",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("bound_cluster_id", None),
                            models.Q(
                                ("bound_component_ids__isnull", True),
                                ("bound_environment_ids__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="trustpolicy_bound_one_way",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("bound_component_ids__isnull", True),
                                models.Q(
                                    GreaterThanOrEqual(JsonArrayLength("bound_component_ids"), 1),
                                    LessThanOrEqual(JsonArrayLength("bound_component_ids"), 1000),
                                ),
                                _connector="OR",
                            ),
                            models.Q(
                                ("bound_environment_ids__isnull", True),
                                models.Q(
                                    GreaterThanOrEqual(JsonArrayLength("bound_environment_ids"), 1),
                                    LessThanOrEqual(JsonArrayLength("bound_environment_ids"), 1000),
                                ),
                                _connector="OR",
                            ),
                        ),
                        name="trustpolicy_bound_to_so_many",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("bound_application_ids__isnull", True),
                                models.Q(
                                    GreaterThanOrEqual(JsonArrayLength("bound_application_ids"), 1),
                                    LessThanOrEqual(JsonArrayLength("bound_application_ids"), 1000),
                                ),
                                _connector="OR",
                            ),
                            models.Q(
                                ("bound_application_ids__isnull", True),
                                ("bound_component_ids__isnull", False),
                                _connector="OR",
                            ),
                        ),
                        name="trustpolicy_bound_to_applications",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("id__startswith", "fed-")), name="trustpolicy_id_form"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("conditions", []), _negated=True),
                        name="trustpolicy_conditions_present",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_token_seconds__gte", 1), ("max_token_seconds__lte", 43200)
                        ),
                        name="trustpolicy_tokens_end",
                    ),
                ],
                "indexes": [
                    models.Index(fields=["owner", "id"], name="trustpolicy_of_owner"),
                    models.Index(
                        condition=models.Q(("disabled_at", None), ("maker__isnull", False)),
                        fields=["maker"],
                        name="trustpolicy_by_maker",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("disabled_at", None), models.Q(("maker_token_id", ""), _negated=True)
                        ),
                        fields=["maker_token_id"],
                        name="trustpolicy_by_maker_token",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="UsedAssertion",
            fields=[
                ("digest", models.BinaryField(max_length=32, primary_key=True, serialize=False)),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["expires_at"], name="usedassertion_by_expiry"),
                ],
            },
        ),
        migrations.AddField(
            model_name="accesstoken",
            name="trust_policy",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="access_tokens",
                to="apikeys.trustpolicy",
            ),
        ),
        migrations.AddField(
            model_name="accesstoken",
            name="run",
            field=models.JSONField(editable=False, null=True),
        ),
    ]
