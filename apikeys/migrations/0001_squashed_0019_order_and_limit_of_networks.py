"""Tables for users, keys, tokens, federation and the audit log."""

import django.contrib.auth.validators
from django.conf import settings
from django.db import migrations, models
from django.db.models import CheckConstraint, F, Index, Q
from django.db.models.functions import Length
from django.db.models.lookups import Exact
from django.utils import timezone

from apikeys import identifiers
from apikeys.migrations._audit_log import make_append_only
from apikeys.migrations._grants import grant_constraints
from apikeys.models.federation import usual_algorithms
from infra_service.lib.database.migration_fields import optional_text, unindexed_key, uuid7_id


def _text_id(make):
    field = models.CharField(
        default=make, editable=False, max_length=40, primary_key=True, serialize=False
    )
    return "id", field


_REPLACED = """
0001_initial 0002_audit_append_only 0003_bindings_and_revisions 0004_admin_permissions
0005_admin_indexes 0006_sessions_end 0007_audit_archives 0008_maker 0009_user_manager
0010_lists_under_any_filter 0011_limits_of_credentials 0012_issued_tokens
0013_bound_applications 0014_federation 0015_tokens_of_policies 0016_trail_in_order_of_commit
0017_credentials_by_end 0018_networks_and_last_use 0019_order_and_limit_of_networks
"""


class Migration(migrations.Migration):
    initial = True

    replaces = [("apikeys", name) for name in _REPLACED.split()]

    dependencies = [("auth", "0012_alter_user_first_name_max_length")]

    operations = [
        migrations.CreateModel(
            name="AuditArchive",
            fields=[
                ("number", models.PositiveIntegerField(primary_key=True, serialize=False)),
                ("digest", models.CharField(max_length=64)),
                ("events", models.PositiveIntegerField()),
                ("first_id", models.UUIDField()),
                ("last_id", models.UUIDField()),
                ("archived_at", models.DateTimeField(default=timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="User",
            fields=[
                ("password", models.CharField(max_length=128, verbose_name="password")),
                (
                    "last_login",
                    models.DateTimeField(blank=True, null=True, verbose_name="last login"),
                ),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with that username already exists."},
                        help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                        max_length=150,
                        unique=True,
                        validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                        verbose_name="username",
                    ),
                ),
                (
                    "first_name",
                    models.CharField(blank=True, max_length=150, verbose_name="first name"),
                ),
                (
                    "last_name",
                    models.CharField(blank=True, max_length=150, verbose_name="last name"),
                ),
                (
                    "email",
                    models.EmailField(blank=True, max_length=254, verbose_name="email address"),
                ),
                (
                    "is_staff",
                    models.BooleanField(
                        default=False,
                        help_text="Designates whether the user can log into this admin site.",
                        verbose_name="staff status",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                        verbose_name="active",
                    ),
                ),
                (
                    "date_joined",
                    models.DateTimeField(default=timezone.now, verbose_name="date joined"),
                ),
                uuid7_id(),
                ("display_name", models.CharField(blank=True, max_length=200)),
                ("sessions_end", models.DateTimeField(editable=False, null=True)),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={"verbose_name": "user", "verbose_name_plural": "users"},
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                ("name", models.CharField(max_length=200)),
                ("scopes", models.JSONField(default=list)),
                ("digest", models.BinaryField(max_length=32, unique=True)),
                ("created_at", models.DateTimeField(default=timezone.now, editable=False)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("bound_cluster_id", models.UUIDField(blank=True, null=True)),
                ("bound_component_ids", models.JSONField(blank=True, null=True)),
                ("bound_environment_ids", models.JSONField(blank=True, null=True)),
                _text_id(identifiers.api_key_id),
                ("previous_digest", models.BinaryField(max_length=32, null=True, unique=True)),
                ("previous_digest_expires_at", models.DateTimeField(null=True)),
                unindexed_key(
                    "created_by", settings.AUTH_USER_MODEL, models.PROTECT, related_name="api_keys"
                ),
                ("revision", models.PositiveIntegerField(default=0, editable=False)),
                optional_text("maker_token_id", 40),
                ("rotated_at", models.DateTimeField(null=True)),
                ("bound_application_ids", models.JSONField(blank=True, null=True)),
                ("allowed_networks", models.JSONField(blank=True, null=True)),
                (
                    "last_used_address",
                    models.GenericIPAddressField(blank=True, editable=False, null=True),
                ),
                unindexed_key(
                    "maker", "apikeys.apikey", models.PROTECT, related_name="made", null=True
                ),
            ],
            options={
                "verbose_name": "API key",
                "permissions": [("revoke_apikey", "Can revoke API keys")],
                "indexes": [
                    Index(name="apikey_of_owner", fields=["created_by", "id"]),
                    Index(name="apikey_by_use", fields=["created_by", "last_used_at", "id"]),
                    Index(
                        name="apikey_by_end",
                        fields=["expires_at", "id"],
                        condition=Q(expires_at__isnull=False, revoked_at=None),
                    ),
                    Index(
                        name="apikey_revoked", fields=["-id"], condition=Q(revoked_at__isnull=False)
                    ),
                    Index(
                        name="apikey_by_maker",
                        fields=["maker", "expires_at"],
                        condition=Q(maker__isnull=False, revoked_at=None),
                    ),
                    Index(
                        name="apikey_by_maker_token",
                        fields=["maker_token_id"],
                        condition=Q(revoked_at=None) & ~Q(maker_token_id=""),
                    ),
                    Index(
                        name="apikey_unrevoked_of_owner",
                        fields=["created_by", "expires_at"],
                        condition=Q(revoked_at=None),
                    ),
                ],
                "constraints": [
                    *grant_constraints("apikey"),
                    CheckConstraint(
                        name="apikey_digest_is_sha256", condition=Exact(Length(F("digest")), 32)
                    ),
                    CheckConstraint(name="apikey_id_form", condition=Q(id__startswith="key-")),
                    CheckConstraint(
                        name="apikey_previous_digest_has_an_end",
                        condition=Q(previous_digest=None, previous_digest_expires_at=None)
                        | Q(
                            previous_digest__isnull=False, previous_digest_expires_at__isnull=False
                        ),
                    ),
                    CheckConstraint(
                        name="apikey_maker_token_has_its_key",
                        condition=Q(maker_token_id="") | Q(maker__isnull=False),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditEvent",
            fields=[
                uuid7_id(),
                ("occurred_at", models.DateTimeField(default=timezone.now)),
                ("action", models.CharField(max_length=50)),
                ("actor_id", models.UUIDField(null=True)),
                ("actor_name", models.CharField(max_length=200)),
                ("token_id", models.CharField(blank=True, max_length=40)),
                ("resource_id", models.CharField(max_length=100)),
                ("address", models.GenericIPAddressField(null=True)),
                ("request_id", models.CharField(blank=True, max_length=64)),
                ("details", models.JSONField(default=dict)),
                optional_text("client_request_id", 64),
            ],
            options={
                "indexes": [
                    Index(name="auditevent_by_time", fields=["occurred_at", "id"]),
                    Index(name="auditevent_by_request", fields=["request_id", "occurred_at", "id"]),
                    Index(name="auditevent_resource", fields=["resource_id", "occurred_at", "id"]),
                    Index(name="auditevent_by_token", fields=["token_id", "occurred_at", "id"]),
                    Index(name="auditevent_by_actor", fields=["actor_id", "occurred_at", "id"]),
                    Index(name="auditevent_action", fields=["action", "occurred_at", "id"]),
                ]
            },
        ),
        migrations.CreateModel(
            name="Issuer",
            fields=[
                _text_id(identifiers.issuer_id),
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
                ("algorithms", models.JSONField(default=usual_algorithms)),
                ("max_assertion_seconds", models.PositiveIntegerField(default=3600)),
                ("key_set", models.JSONField(editable=False, null=True)),
                ("key_set_fetched_at", models.DateTimeField(editable=False, null=True)),
                ("key_set_asked_at", models.DateTimeField(editable=False, null=True)),
                ("key_set_settled_at", models.DateTimeField(editable=False, null=True)),
                ("failures", models.PositiveIntegerField(default=0, editable=False)),
                ("revision", models.PositiveIntegerField(default=0, editable=False)),
                ("disabled_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("created_at", models.DateTimeField(default=timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(default=timezone.now, editable=False)),
            ],
            options={
                "constraints": [
                    CheckConstraint(name="issuer_id_form", condition=Q(id__startswith="iss-")),
                    CheckConstraint(
                        name="issuer_kind_known",
                        condition=Q(
                            kind__in=[
                                "GITHUB",
                                "GITLAB",
                                "KUBERNETES",
                                "BUILDKITE",
                                "CIRCLECI",
                                "CUSTOM",
                            ]
                        ),
                    ),
                    CheckConstraint(
                        name="issuer_url_is_https",
                        condition=Q(url__startswith="https://")
                        | Q(inline_keys__isnull=False) & ~Q(url=""),
                    ),
                    CheckConstraint(
                        name="issuer_jwks_url_is_https",
                        condition=Q(jwks_url="") | Q(jwks_url__startswith="https://"),
                    ),
                    CheckConstraint(name="issuer_audience_present", condition=~Q(audience="")),
                    CheckConstraint(
                        name="issuer_keys_from_one_place",
                        condition=Q(inline_keys__isnull=True) | Q(jwks_url=""),
                    ),
                    CheckConstraint(
                        name="issuer_assertions_end",
                        condition=Q(max_assertion_seconds__gte=1, max_assertion_seconds__lte=86400),
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="TrustPolicy",
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
                _text_id(identifiers.trust_policy_id),
                (
                    "issuer",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="policies", to="apikeys.issuer"
                    ),
                ),
                unindexed_key(
                    "owner", settings.AUTH_USER_MODEL, models.PROTECT, related_name="trust_policies"
                ),
                ("conditions", models.JSONField(default=list)),
                ("max_token_seconds", models.PositiveIntegerField(default=3600)),
                ("disabled_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("last_run", models.JSONField(editable=False, null=True)),
                unindexed_key(
                    "created_by",
                    settings.AUTH_USER_MODEL,
                    models.PROTECT,
                    related_name="+",
                    null=True,
                ),
                unindexed_key(
                    "maker",
                    "apikeys.apikey",
                    models.PROTECT,
                    related_name="trust_policies",
                    null=True,
                ),
                ("maker_token_id", models.CharField(blank=True, default="", max_length=40)),
                ("updated_at", models.DateTimeField(default=timezone.now, editable=False)),
                ("allowed_networks", models.JSONField(blank=True, null=True)),
            ],
            options={
                "verbose_name_plural": "trust policies",
                "indexes": [
                    Index(name="trustpolicy_of_owner", fields=["owner", "id"]),
                    Index(
                        name="trustpolicy_by_maker",
                        fields=["maker"],
                        condition=Q(disabled_at=None, maker__isnull=False),
                    ),
                    Index(
                        name="trustpolicy_by_maker_token",
                        fields=["maker_token_id"],
                        condition=Q(disabled_at=None) & ~Q(maker_token_id=""),
                    ),
                ],
                "constraints": [
                    *grant_constraints("trustpolicy"),
                    CheckConstraint(name="trustpolicy_id_form", condition=Q(id__startswith="fed-")),
                    CheckConstraint(
                        name="trustpolicy_conditions_present", condition=~Q(conditions=[])
                    ),
                    CheckConstraint(
                        name="trustpolicy_tokens_end",
                        condition=Q(max_token_seconds__gte=1, max_token_seconds__lte=43200),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AccessToken",
            fields=[
                ("name", models.CharField(max_length=200)),
                ("scopes", models.JSONField(default=list)),
                ("digest", models.BinaryField(max_length=32, unique=True)),
                ("created_at", models.DateTimeField(default=timezone.now, editable=False)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("bound_cluster_id", models.UUIDField(blank=True, null=True)),
                ("bound_component_ids", models.JSONField(blank=True, null=True)),
                ("bound_environment_ids", models.JSONField(blank=True, null=True)),
                _text_id(identifiers.access_token_id),
                (
                    "kind",
                    models.CharField(
                        choices=[("PERSONAL", "Personal"), ("SERVICE", "Service")], max_length=8
                    ),
                ),
                unindexed_key(
                    "created_by",
                    settings.AUTH_USER_MODEL,
                    models.PROTECT,
                    related_name="access_tokens",
                ),
                (
                    "api_key",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="access_tokens",
                        to="apikeys.apikey",
                    ),
                ),
                ("revision", models.PositiveIntegerField(default=0, editable=False)),
                ("bound_application_ids", models.JSONField(blank=True, null=True)),
                unindexed_key(
                    "trust_policy",
                    "apikeys.trustpolicy",
                    models.PROTECT,
                    related_name="access_tokens",
                    null=True,
                    blank=True,
                ),
                ("run", models.JSONField(editable=False, null=True)),
                ("allowed_networks", models.JSONField(blank=True, null=True)),
                (
                    "last_used_address",
                    models.GenericIPAddressField(blank=True, editable=False, null=True),
                ),
            ],
            options={
                "permissions": [("revoke_accesstoken", "Can revoke access tokens")],
                "indexes": [
                    Index(name="accesstoken_of_owner", fields=["created_by", "id"]),
                    Index(name="accesstoken_by_use", fields=["created_by", "last_used_at", "id"]),
                    Index(
                        name="accesstoken_by_end",
                        fields=["expires_at", "id"],
                        condition=Q(expires_at__isnull=False, revoked_at=None),
                    ),
                    Index(
                        name="accesstoken_revoked",
                        fields=["-id"],
                        condition=Q(revoked_at__isnull=False),
                    ),
                    Index(
                        name="accesstoken_by_operators",
                        fields=["expires_at"],
                        condition=Q(api_key=None, revoked_at=None, trust_policy=None),
                    ),
                    Index(
                        name="accesstoken_of_policy",
                        fields=["trust_policy", "-id"],
                        condition=Q(trust_policy__isnull=False),
                    ),
                ],
                "constraints": [
                    *grant_constraints("accesstoken"),
                    CheckConstraint(
                        name="accesstoken_digest_is_sha256",
                        condition=Exact(Length(F("digest")), 32),
                    ),
                    CheckConstraint(name="accesstoken_id_form", condition=Q(id__startswith="tok-")),
                    CheckConstraint(
                        name="accesstoken_kind_known", condition=Q(kind__in=["PERSONAL", "SERVICE"])
                    ),
                    CheckConstraint(
                        name="accesstoken_minted_expires",
                        condition=Q(api_key=None) | Q(expires_at__isnull=False),
                    ),
                    CheckConstraint(
                        name="accesstoken_exchanged_expires",
                        condition=Q(trust_policy=None)
                        | Q(api_key=None, expires_at__isnull=False, kind="SERVICE"),
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
            options={"indexes": [Index(name="usedassertion_by_expiry", fields=["expires_at"])]},
        ),
        migrations.RunPython(make_append_only),
    ]
