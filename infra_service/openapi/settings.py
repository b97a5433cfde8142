"""The parts of the OpenAPI document that describe the service as a whole."""

from infra_service import __version__

_DESCRIPTION = """\
API keys, infrastructure state and cluster workloads. Every path is also served with a final slash.
A method that a path does not have is 405, with `Allow`.

**How to get a token.** `make run` prints one when it first starts, and an operator issues one in
the [admin](/admin/) or with `manage.py issue_token`. An API key mints one: *Mint access token*,
`POST /v1/access-tokens`.

**Where to put it.** *Authorize* asks for it; nothing is stored, and reloading the page forgets it.

| you have | field | what it opens |
|---|---|---|
| an access token, `isp_…` or `iss_…` | `accessToken` | `/api/v1`; a minted one also `/v1` |
| an API key, `isk_…` | `apiKey` | `/v1` |

`accessTokenAsPassword` is how Terraform sends an access token. Leave it empty here.

**Errors** have one form. `reason` is for programs, `message` for people: `{"error": {"code": 404,
"status": "NOT_FOUND", "message": "…", "details": [{"reason": "…", …}, …]}}`
"""

SPECTACULAR_SETTINGS = {
    "TITLE": "Infrastructure management service",
    "DESCRIPTION": _DESCRIPTION,
    "VERSION": __version__,
    # Class docstrings address developers; infra_service.lib.api.fields.described documents schemas.
    "DISABLE_DOCSTRING_DESCRIPTIONS": True,
    "SERVERS": [{"url": "/", "description": "The service that this document comes from."}],
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/(api/)?v1",
    # Requests and responses differ: requests are closed and may omit fields, responses are
    # complete.
    "COMPONENT_SPLIT_REQUEST": True,
    "SORT_OPERATION_PARAMETERS": False,
    "TAGS": [
        {"name": name, "description": text}
        for name, text in {
            "api-keys": "The caller's own API keys.",
            "access-tokens": "Tokens minted from a key, or issued.",
            "issuers": "Platforms whose signatures are believed.",
            "trust-policies": "Which pipelines get tokens for those of their platform.",
            "state-backend": "The HTTP state backend of Terraform and OpenTofu.",
            "states": "States and their history, for people and tools.",
            "resources": "What is in the current versions of all states.",
            "applications": "Groups of components.",
            "components": "Pieces of infrastructure.",
            "environments": "Where components are deployed.",
            "clusters": "Clusters and what runs in them.",
            "workloads": "What runs in all clusters.",
            "images": "Which images run, and where.",
            "audit-events": "The audit trail.",
            "webhooks": "Who is told of events, and what was sent to them.",
            "service": "The service itself.",
        }.items()
    ],
    "ENUM_NAME_OVERRIDES": {
        "Scope": "apikeys.scopes.Scope.choices",
        "ApiKeyStatus": "apikeys.querysets.ApiKeyStatus.choices",
        "AccessTokenStatus": "apikeys.querysets.AccessTokenStatus.choices",
        "AccessTokenKind": "apikeys.models.AccessToken.Kind",
        "IssuerKind": "apikeys.models.Issuer.Kind",
        "SigningAlgorithm": "apikeys.federation.keys.ALGORITHMS",
        "WebhookEventType": "infra_service.webhooks.event_types.NAMES",
        "WebhookFormat": "infra_service.webhooks.models.WebhookEndpoint.Format",
        "DeliveryStatus": "infra_service.webhooks.models.Delivery.Status",
        "WorkloadKind": "workloads.models.KINDS",
        "WorkloadJoin": ["METADATA_UID", "HELM_RELEASE"],
        "WorkloadHealthStatus": "workloads.models.HEALTH_STATUSES",
        "TransitionType": "workloads.api.history_serializers.TRANSITION_TYPES",
        "ClusterHealthStatus": "workloads.cluster_health.HEALTH_STATUSES",
        "ChangeAction": ["ADDED", "CHANGED", "REMOVED"],
        "HiddenReason": ["MARKED_SENSITIVE", "CONTAINS_SENSITIVE_VALUE", "TOO_MANY_ESCAPES"],
        "CollectionStatus": "workloads.collection.COLLECTION_STATUSES",
        "CollectionFailureReason": "workloads.collection.FAILURE_REASONS",
        "ContainerState": ["running", "terminated", "waiting"],
        "PodPhase": ["Failed", "Pending", "Running", "Succeeded", "Unknown"],
        "ConditionStatus": ["False", "True", "Unknown"],
        "ErrorStatus": "infra_service.openapi.answers.CODES",
    },
    "PREPROCESSING_HOOKS": ["infra_service.openapi.pages.describable"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "infra_service.openapi.components.tidied",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
