"""The parts of the OpenAPI document that describe the service as a whole."""

from infra_service import __version__
from infra_service.openapi.enums import ENUMS

_DESCRIPTION = """\
API keys, infrastructure state and cluster workloads. Every path works with and without a trailing
slash. An unsupported method returns 405 with `Allow`.

**Get a token.** `make run` prints a token on its first start, and an operator issues tokens in
the [admin](/admin/) or with `manage.py issue_token`. An API key mints tokens: *Mint access token*,
`POST /v1/access-tokens`.

**Use the token.** Enter the token under *Authorize*. The page does not store the token, so enter it
again after a reload.

| token | field | access |
|---|---|---|
| an access token, `isp_…` or `iss_…` | `accessToken` | `/api/v1`; minted tokens also `/v1` |
| an API key, `isk_…` | `apiKey` | `/v1` |

Terraform sends an access token as `accessTokenAsPassword`. Leave this field empty here.

**Errors** have one format, except for most errors of token exchanges. `reason` is machine-readable,
`message` is human-readable: `{"error": {"code": 404, "status": "NOT_FOUND", "message": "…",
"details": [{"reason": "…", …}, …]}}`
"""

SPECTACULAR_SETTINGS = {
    "TITLE": "Infrastructure management service",
    "DESCRIPTION": _DESCRIPTION,
    "VERSION": __version__,
    # Class docstrings address developers; infra_service.lib.api.fields.described documents schemas.
    "DISABLE_DOCSTRING_DESCRIPTIONS": True,
    "SERVERS": [{"url": "/", "description": "This service."}],
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/(api/)?v1",
    # Requests and responses differ: requests may omit fields but must not contain unknown fields,
    # and responses are complete.
    "COMPONENT_SPLIT_REQUEST": True,
    "SORT_OPERATION_PARAMETERS": False,
    "TAGS": [
        {"name": name, "description": text}
        for name, text in {
            "api-keys": "The caller's own API keys.",
            "access-tokens": "Access tokens, minted from a key or issued.",
            "issuers": "Platforms whose signed tokens the service trusts.",
            "trust-policies": "Grants of access tokens to pipelines.",
            "state-backend": "The HTTP state backend of Terraform and OpenTofu.",
            "states": "States and their history, for people and tools.",
            "resources": "Resources in the current versions of all states.",
            "changes": "Changes to resources and workloads.",
            "applications": "Groups of components.",
            "components": "Deployable units of infrastructure.",
            "environments": "Deployment targets of components.",
            "clusters": "Clusters and their workloads.",
            "workloads": "Workloads of all clusters.",
            "images": "Container images and where they run.",
            "audit-events": "The audit log.",
            "webhooks": "Subscriptions to events, and their deliveries.",
            "service": "The service itself.",
        }.items()
    ],
    "ENUM_NAME_OVERRIDES": {name: enum.choices for name, enum in ENUMS.items()},
    # Fields would repeat the choices of their enums, which describe_enums describes.
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "PREPROCESSING_HOOKS": ["infra_service.openapi.pages.describable"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "infra_service.openapi.components.describe_enums",
        "infra_service.openapi.components.prepare_for_generators",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
