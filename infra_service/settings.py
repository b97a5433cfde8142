"""The composition root: all settings, and the choice of all pluggable classes.

Values come from the environment, from a file named by ``<NAME>_FILE`` (for mounted secrets), or
from ``var/service.env``, which ``make run`` writes. The environment has precedence. The reference
for operators is docs/reference/settings.md. A test compares the reference with this file.
"""

from pathlib import Path

import environ

from infra_service import logs
from infra_service.lib.database.connecting import with_defaults
from infra_service.lib.environment import Environment
from infra_service.openapi.settings import SPECTACULAR_SETTINGS  # noqa: F401 - a setting
from infra_service.operations.object_storage import s3_storage
from infra_service.operations.wrapped_keys import Transit, unwrap
from infra_service.sign_on import configuration as sign_on

BASE_DIR = Path(__file__).resolve().parent.parent

env = Environment()
VAR_DIR = Path(env.str("VAR_DIR", default=str(BASE_DIR / "var")))
environ.Env.read_env(VAR_DIR / "service.env")

# --- Secrets: required, so that no installation runs with a known value ---------------------------

SECRET_KEY = env.str("SECRET_KEY")
SECRET_KEY_FALLBACKS = env.parts("SECRET_KEY_FALLBACKS", default="")
# Each key is 32 random bytes in base64, or wrapped by Vault, OpenBao or AWS KMS. The service
# encrypts with the first key, and decrypts with all keys.
STATE_ENCRYPTION_KEYS = unwrap(
    env.parts("STATE_ENCRYPTION_KEYS"),
    Transit(
        url=env.str("VAULT_ADDR", default=""),
        token=env.str("VAULT_TOKEN", default=""),
        namespace=env.str("VAULT_NAMESPACE", default=""),
        path=env.str("VAULT_TRANSIT_KEY", default="transit/infra-service"),
    ),
)

# --- Django ---------------------------------------------------------------------------------------

DEBUG = False
ALLOWED_HOSTS = env.parts("ALLOWED_HOSTS", default="localhost,127.0.0.1,[::1]")
CSRF_FAILURE_VIEW = "infra_service.lib.api.handlers.csrf_failure"
CSRF_TRUSTED_ORIGINS = env.parts("CSRF_TRUSTED_ORIGINS", default="")
ROOT_URLCONF = "infra_service.urls"
WSGI_APPLICATION = "infra_service.wsgi.application"
AUTH_USER_MODEL = "apikeys.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = ["infra_service.console.formats"]
# With a redirect, Terraform would lose a state and report success, so Django appends no slash.
APPEND_SLASH = False

INSTALLED_APPS = [
    "infra_service.apps.InfraServiceConfig",
    "infra_service.console.apps.ConsoleConfig",
    "infra_service.lib.admin.apps.AdminLibraryConfig",
    "apikeys.apps.ApiKeysConfig",
    "states.apps.StatesConfig",
    "workloads.apps.WorkloadsConfig",
    "infra_service.change_history.apps.ChangeHistoryConfig",
    "infra_service.webhooks.apps.WebhooksConfig",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "infra_service.console.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "infra_service.middleware.RequestContextMiddleware",
    # Before all middleware that can fail, so that error pages also have these headers.
    "infra_service.middleware.PagePolicyMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "infra_service.middleware.BodyLengthMiddleware",
    "infra_service.lib.api.memory.MemoryMiddleware",
    "apikeys.middleware.TokenExpiryMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "apikeys.middleware.ActingMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
# The default storage also prepares signed cookies, which takes time in each request of the API.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
] + [{"NAME": "apikeys.password_changes.RecordedPassword"}]

STATIC_URL = "static/"
# WhiteNoise serves the files of the admin and of Swagger UI from their packages.
WHITENOISE_USE_FINDERS = True
STATICFILES_FINDERS = ["infra_service.openapi.static_files.UsedFilesFinder"]
# `make docs` builds the documentation, which is then served at /docs/.
WHITENOISE_ROOT = BASE_DIR / "site" if (BASE_DIR / "site").is_dir() else None
WHITENOISE_INDEX_FILE = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# --- Database -------------------------------------------------------------------------------------

# `check --deploy` rejects the default database.
DATABASE_IS_CHOSEN = bool(env.str("DATABASE_URL", default=""))
DATABASES = {"default": env.db_url("DATABASE_URL", default=f"sqlite:///{VAR_DIR / 'db.sqlite3'}")}
if env.str("DATABASE_REPLICA_URL", default=""):
    DATABASES["replica"] = {**env.db_url("DATABASE_REPLICA_URL"), "TEST": {"MIRROR": "default"}}
# Seconds to wait until the replica has caught up. Then the primary serves the read.
DATABASE_REPLICA_MAX_LAG = env.float("DATABASE_REPLICA_MAX_LAG", default=0.1)
for _name, _database in DATABASES.items():
    if _database["ENGINE"] == "django.db.backends.postgresql":
        # An engine that uses a pooled connection only during a statement or a transaction.
        _database["ENGINE"] = "infra_service.lib.database.postgresql"
        _threshold = env.int("DATABASE_PREPARE_THRESHOLD", default=None)
        _database["OPTIONS"] = {
            **with_defaults(_database.get("OPTIONS", {}), is_replica=_name == "replica"),
            # Each worker opens its pool after the fork. A request that obtains no connection in
            # time fails with 503.
            "pool": {
                "min_size": env.int("DATABASE_POOL_MIN", default=1),
                "max_size": env.int("DATABASE_POOL_MAX", default=10),
                # Do not wait for a replica longer than its maximum lag.
                "timeout": DATABASE_REPLICA_MAX_LAG
                if _name == "replica"
                else env.int("DATABASE_POOL_TIMEOUT", default=10),
                # The pool doubles the pauses between attempts up to this limit. The default of
                # 5 minutes would extend a database outage by the same time. Requests restart the
                # attempts.
                "reconnect_timeout": 3,
            },
            # Seconds, for requests but not for commands (infra_service.wsgi). 0 means no limit.
            "request_timeouts": {
                # After a second without a result from the replica, the primary serves the read.
                "statement_timeout": 1.0
                if _name == "replica"
                else env.float("DATABASE_STATEMENT_TIMEOUT", default=30),
                "lock_timeout": env.float("DATABASE_LOCK_TIMEOUT", default=10),
                "idle_in_transaction_session_timeout": env.float(
                    "DATABASE_IDLE_TRANSACTION_TIMEOUT", default=60
                ),
            },
            # Both options are required to save the server's parsing and planning. Statements are
            # prepared only from the third use, because migrations send several commands in one
            # statement, which cannot be prepared.
            "server_side_binding": True,
            # Behind a pooler, statements are prepared only if the operator enables it.
            "prepare_threshold": 2 if _threshold is None else _threshold,
            "prepares_through_pooler": _threshold is not None,
        }
    elif _database["ENGINE"] == "django.db.backends.sqlite3":
        # An engine in which waiting writers leave threads for readers.
        _database["ENGINE"] = "infra_service.lib.database.sqlite"
        _database["CONN_MAX_AGE"] = None
        _database["OPTIONS"] = {
            # Writers queue at BEGIN instead of failing when they upgrade a read lock.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            # FULL: an acknowledged push survives a power loss.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
            "PRAGMA foreign_keys=ON;",
        }

# --- The API --------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["apikeys.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [
        "infra_service.lib.api.throttling.WithinLimits",
        "apikeys.permissions.HasScope",
    ],
    "DEFAULT_RENDERER_CLASSES": ["infra_service.lib.api.rendering.JsonRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "infra_service.lib.api.rendering.ContentNegotiation",
    "DEFAULT_PARSER_CLASSES": ["infra_service.lib.api.parsers.JsonParser"],
    "DEFAULT_FILTER_BACKENDS": ["filterlang.backend.FilterLanguageBackend"],
    "DEFAULT_PAGINATION_CLASS": "infra_service.lib.api.pagination.KeysetPagination",
    # No view handles OPTIONS, because the OpenAPI document describes the API.
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_SCHEMA_CLASS": "infra_service.openapi.schema.ApiSchema",
    "EXCEPTION_HANDLER": "infra_service.lib.api.errors.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,
    # A fixed format with microseconds, so that times compare as text.
    "DATETIME_FORMAT": "%Y-%m-%dT%H:%M:%S.%fZ",
}

# Resolves the component, environment and application names of a binding, which the apikeys app
# cannot look up.
BINDING_NAMES = "states.addresses.find_inside"


# The maximum number of requests per minute, including rejected requests: per token, per key with
# its minted tokens, and per owner with all credentials. RATE_LIMIT_FAILURES limits the failed
# authentications per minute and address. 0 means no limit.
RATE_LIMIT_TOKEN = env.int("RATE_LIMIT_TOKEN", default=60_000)
RATE_LIMIT_KEY = env.int("RATE_LIMIT_KEY", default=60_000)
RATE_LIMIT_OWNER = env.int("RATE_LIMIT_OWNER", default=120_000)
RATE_LIMIT_FAILURES = env.int("RATE_LIMIT_FAILURES", default=600)
# The maximum number of admin logins per minute and address, which prevents guessing of passwords.
RATE_LIMIT_LOGINS = env.int("RATE_LIMIT_LOGINS", default=20)
# Days after the owner's last sign-on until the service rejects keys and tokens. 0 means never.
OWNER_IDLE_DAYS = env.days("OWNER_IDLE_DAYS", default=0)
# Private networks, such as 10.0.0.0/8, from which the service may fetch issuers' keys, in addition
# to public addresses.
ISSUER_NETWORKS = env.networks("ISSUER_NETWORKS", default="")
# Private networks to which the service may send webhooks, even over plain HTTP, in addition to
# public addresses over HTTPS.
WEBHOOK_NETWORKS = env.networks("WEBHOOK_NETWORKS", default="")
# Minutes until a held lock causes the webhook event state.lock_held.
WEBHOOK_LOCK_HELD_MINUTES = env.int("WEBHOOK_LOCK_HELD_MINUTES", default=60)
# Minutes for which changes in a cluster are collected into a single event workload.health_changed.
WEBHOOK_HEALTH_CHANGED_MINUTES = env.int("WEBHOOK_HEALTH_CHANGED_MINUTES", default=5)
# The store of rate limit counters: redis://… for all worker processes, or empty for the memory of
# each process.
CACHE_URL = env.str("CACHE_URL", default="")

# The maximum size of a state document in bytes. Larger documents are rejected before they are read.
STATE_MAX_BYTES = env.int("STATE_MAX_BYTES", default=64 * 1024 * 1024)
# The maximum size of the documents in the memory of a worker process. The restoration of the
# largest document requires five times STATE_MAX_BYTES, so the value must be at least this size.
MEMORY_BUDGET_BYTES = env.int("MEMORY_BUDGET_BYTES", default=512 * 1024 * 1024)
# The retention of a deleted state's history.
STATE_RETENTION_DAYS = env.days("STATE_RETENTION_DAYS", default=90)
# prune_states keeps the STATE_VERSIONS_KEPT newest versions of a state, and all versions that are
# younger than STATE_VERSIONS_DAYS.
STATE_VERSIONS_KEPT = env.int("STATE_VERSIONS_KEPT", default=100)
STATE_VERSIONS_DAYS = env.days("STATE_VERSIONS_DAYS", default=30)
# Days after which housekeeping deletes catalogue entries without states. 0 means never.
CATALOGUE_UNUSED_DAYS = env.days("CATALOGUE_UNUSED_DAYS", default=0)
# Days after the expiry of access tokens until housekeeping deletes them.
ACCESS_TOKENS_KEPT_DAYS = env.days("ACCESS_TOKENS_KEPT_DAYS", default=30)
# Whether tools for assistants (/mcp) show sensitive outputs to tokens with state:secrets.
MCP_SENSITIVE_OUTPUTS = env.bool("MCP_SENSITIVE_OUTPUTS", default=False)
# Whether index_states revokes keys and tokens of this service that it finds in a state.
REVOKE_TOKENS_IN_STATES = env.bool("REVOKE_TOKENS_IN_STATES", default=False)
# The directory in which housekeeping archives older audit events; empty disables archiving.
AUDIT_ARCHIVE_DIR = env.str("AUDIT_ARCHIVE_DIR", default="")
AUDIT_EVENTS_KEPT_DAYS = env.days("AUDIT_EVENTS_KEPT_DAYS", default=400)
# s3://bucket/prefix?endpoint_url=…&region_name=…: stores documents outside the database.
STATE_STORAGE_URL = env.str("STATE_STORAGE_URL", default="")
# False while documents are moved back into the database, which then stores new documents.
STATE_STORAGE_WRITES = env.bool("STATE_STORAGE_WRITES", default=True)
if STATE_STORAGE_URL:
    STORAGES["states"] = s3_storage(STATE_STORAGE_URL)
# The routes of the `remote` backend and the `cloud` block, with workspaces (states.remote).
REMOTE_BACKEND = env.bool("REMOTE_BACKEND", default=False)
# The organization of components without an application; other organizations are applications.
REMOTE_ORGANIZATION = env.str("REMOTE_ORGANIZATION", default="default")
# The format of workspace names, and the environment of a name that does not match the format.
REMOTE_WORKSPACES = env.str("REMOTE_WORKSPACES", default="{component}-{environment}")
REMOTE_DEFAULT_ENVIRONMENT = env.str("REMOTE_DEFAULT_ENVIRONMENT", default="default")
# The maximum size of a report of workloads in bytes, after decompression.
WORKLOADS_MAX_BYTES = env.int("WORKLOADS_MAX_BYTES", default=32 * 1024 * 1024)
# Finds the resources of states that manage a workload (workloads/managed.py).
WORKLOADS_MANAGING = "infra_service.managed_workloads.StatesManage"
# The maximum size of the bodies of ordinary resources. Documents have their own limit.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
FILE_UPLOAD_HANDLERS = ["infra_service.lib.api.uploads.RefusingUploadHandler"]

# --- Transport ------------------------------------------------------------------------------------

# True behind a proxy that terminates TLS, sets the X-Forwarded headers, and is the only client of
# this server.
BEHIND_TLS_PROXY = env.bool("BEHIND_TLS_PROXY", default=False)
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=False)
# API clients receive an error instead of a redirect (infra_service.middleware).
SECURE_REDIRECT_EXEMPT = [r"^(api|v1|mcp|\.well-known|healthz|readyz|metrics)(/|$)"]
if BEHIND_TLS_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# The addresses of all trusted proxies. If empty, the peer of each connection is the proxy.
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES", default="")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT or BEHIND_TLS_PROXY
SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", default=0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("SECURE_HSTS_INCLUDE_SUBDOMAINS", default=False)
SECURE_HSTS_PRELOAD = env.bool("SECURE_HSTS_PRELOAD", default=False)
# The operator decides about subdomains and preloading, which affect hosts outside of this service.
# infra_service.E013 replaces the warning about a weak SECRET_KEY.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W009", "security.W021"]
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"

# --- Sign-on of operators -------------------------------------------------------------------------

# The OpenID Connect provider. Empty disables sign-on, and the extra is not loaded.
OIDC_ISSUER = env.str("OIDC_ISSUER", default="")
OIDC_CLIENT_ID = env.str("OIDC_CLIENT_ID", default="")
OIDC_CLIENT_SECRET = env.str("OIDC_CLIENT_SECRET", default="")
# The provider's name on the login page. The default is its host.
OIDC_NAME = env.str("OIDC_NAME", default="")
# The claim with the user's groups at the provider, and the mapping to groups of this service.
OIDC_GROUPS_CLAIM = env.str("OIDC_GROUPS_CLAIM", default="groups")
OIDC_GROUP_MAP = env.pairs("OIDC_GROUP_MAP", default="")
# How users log in to the admin: password, oidc, or both.
ADMIN_LOGIN = env.str("ADMIN_LOGIN", default=sign_on.PASSWORD)
# The second factor for passwords, a code or a passkey: off, optional, or required. With a provider,
# users can add a second factor even if the value is off.
ADMIN_SECOND_FACTOR = env.str("ADMIN_SECOND_FACTOR", default=sign_on.OFF)
HAS_SECOND_FACTORS = bool(OIDC_ISSUER) or ADMIN_SECOND_FACTOR != sign_on.OFF
# Whether `terraform login` authorizes clients by OAuth instead of a pasted token.
TERRAFORM_LOGIN = REMOTE_BACKEND and ADMIN_LOGIN != sign_on.PASSWORD
if _sign_on_apps := sign_on.sign_on_apps(
    issuer=OIDC_ISSUER,
    client_id=OIDC_CLIENT_ID,
    client_secret=OIDC_CLIENT_SECRET,
    group_map=OIDC_GROUP_MAP,
    admin_login=ADMIN_LOGIN,
    second_factor=ADMIN_SECOND_FACTOR,
):
    INSTALLED_APPS += _sign_on_apps
    MIDDLEWARE.append(sign_on.MIDDLEWARE)
    SOCIALACCOUNT_ADAPTER = "infra_service.sign_on.provider.NoSignUp"
    MFA_SUPPORTED_TYPES = ["totp", "webauthn"]

# --- Metrics --------------------------------------------------------------------------------------

# The networks that may read /metrics directly, without a proxy. Empty means none.
METRICS_NETWORKS = env.networks("METRICS_NETWORKS", default="127.0.0.0/8,::1/128")

# --- Logs -----------------------------------------------------------------------------------------

LOG_LEVEL = logs.minimum_severity(env.str("LOG_LEVEL", default="INFO"))
DEFAULT_EXCEPTION_REPORTER_FILTER = "infra_service.operations.error_reports.TokenlessReportFilter"
LOGGING = {
    **logs.of_standard_library(LOG_LEVEL),
    "loggers": {
        # At INFO, psycopg logs each use of a pooled connection.
        "psycopg.pool": {"level": "WARNING"},
        # At INFO, botocore logs the sources of credentials and endpoints.
        "botocore": {"level": "WARNING"},
        # The service's access event contains the same information.
        "django.request": {"level": "CRITICAL"},
        "django.security": {"level": "CRITICAL"},
        "django.security.csrf": {"level": "WARNING"},  # logs the reason
    },
}
