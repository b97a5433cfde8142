"""Example objects for the OpenAPI document."""

from typing import Any, Final

OWNER: Final = {
    "id": "01a1fd44-f43f-75fc-b35f-89032d76270d",
    "display_name": "Ada Lovelace",
    "email": "ada@example.com",
}
_COMPONENT: Final = "72764210-d21c-4259-94f6-32443fc5849f"
#: Examples never contain a complete secret.
API_KEY_SECRET: Final = "isk_…"  # noqa: S105 - it is elided
ACCESS_TOKEN_SECRET: Final = "isp_…"  # noqa: S105 - it is elided

API_KEY: Final[dict[str, Any]] = {
    "id": "key-03h9ydjouibqaz0twqkyqay3s",
    "name": "deploy",
    "scopes": ["apikey:write", "state:read", "state:write"],
    "binding": {
        "cluster_id": None,
        "component_ids": [_COMPONENT],
        "environment_ids": None,
        "application_ids": None,
    },
    "expires_at": "2099-11-25T00:00:00.000000Z",
    "allowed_networks": None,
    "unusable_reason": None,
    "last_used_at": None,
    "last_used_address": None,
    "revoked_at": None,
    "created_by": OWNER,
    "created_at": "2026-11-21T08:42:01.883645Z",
    "status": "API_KEY_STATUS_ACTIVE",
    "made_by": "key-03h9xw2mf0e8v5c7qk1d6n4zb",
    "old_secret_expires_at": None,
}
REVOKED_API_KEY: Final = {
    **API_KEY,
    "revoked_at": "2026-11-21T08:42:02.782982Z",
    "unusable_reason": "REVOKED",
    "status": "API_KEY_STATUS_REVOKED",
}
ACCESS_TOKEN: Final[dict[str, Any]] = {
    "id": "tok-03h9ydjs0fj3g01u4aozykk86",
    "name": "job 17",
    "scopes": ["state:read", "state:write"],
    "binding": None,
    "expires_at": "2026-11-21T09:42:02.104211Z",
    "allowed_networks": None,
    "unusable_reason": None,
    "last_used_at": None,
    "last_used_address": None,
    "revoked_at": None,
    "created_by": OWNER,
    "created_at": "2026-11-21T08:42:02.104211Z",
    "kind": "PERSONAL",
    "status": "ACCESS_TOKEN_STATUS_ACTIVE",
    "api_key_id": API_KEY["id"],
    "trust_policy_id": None,
    "run": None,
}
NEW_ACCESS_TOKEN: Final = {
    "name": "job 17",
    "scopes": ["state:read", "state:write"],
    "kind": "PERSONAL",
    "ttl": "900s",
}
REVOKED_ACCESS_TOKEN: Final = {
    **ACCESS_TOKEN,
    "revoked_at": "2026-11-21T08:50:00.000000Z",
    "unusable_reason": "REVOKED",
    "status": "ACCESS_TOKEN_STATUS_REVOKED",
}
CALLER: Final = {
    "token_id": ACCESS_TOKEN["id"],
    "token_kind": "PERSONAL",
    "api_key_id": API_KEY["id"],
    "trust_policy_id": None,
    "scopes": ["state:read", "state:write"],
    "binding": None,
    "expires_at": "2026-11-21T09:42:02.104211Z",
}
AUDIT_EVENT: Final[dict[str, Any]] = {
    "id": "01a1fd5d-e3b1-7a60-8d1c-0f6b2a9e5d11",
    "occurred_at": "2026-11-21T09:09:11.183640Z",
    "action": "state.push",
    "actor_id": OWNER["id"],
    "actor_name": "ada",
    "token_id": ACCESS_TOKEN["id"],
    "resource_id": "01a1fd5d-e387-7732-9391-3a8d8bc7ec7b",
    "address": "192.0.2.17",
    "request_id": "01a1fd5de40e71008d5de2f5d6b32654",
    "client_request_id": "",
    "trace_id": None,
    "details": {
        "version": 2,
        "serial": 31,
        "md5": "671c1f4fd94a1d6ad09886f55c81eeae",
        "size_bytes": 18934,
    },
}
ISSUER: Final[dict[str, Any]] = {
    "id": "iss-03h9ydm0a5r1x2b8w7q4kcn6e",
    "kind": "GITHUB",
    "name": "GitHub",
    "url": "https://token.actions.githubusercontent.com",
    "audience": "https://infra.example.com",
    "jwks_url": "",
    "inline_keys": None,
    "ca": "",
    "algorithms": ["RS256"],
    "max_assertion_seconds": 3600,
    "keys_fetched_at": "2026-11-21T09:09:11.102030Z",
    "failures": 0,
    "disabled_at": None,
    "created_at": "2026-11-21T08:42:03.511820Z",
    "updated_at": "2026-11-21T08:42:03.511820Z",
}
DISABLED_ISSUER: Final = {**ISSUER, "disabled_at": "2026-11-21T10:00:00.000000Z"}
NEW_ISSUER: Final = {**{name: ISSUER[name] for name in ("kind", "audience")}, "name": "example"}
TRUST_POLICY: Final[dict[str, Any]] = {
    "id": "fed-03h9ydm9q4s0v6t2x8y1z3a5c",
    "name": "deploy of acme/infra",
    "issuer_id": ISSUER["id"],
    "conditions": [
        {"claim": "repository_id", "equals": "651234"},
        {"claim": "repository_owner_id", "equals": "9919"},
        {"claim": "environment", "equals": "production"},
    ],
    "scopes": ["state:read", "state:write"],
    "binding": None,
    "allowed_networks": None,
    "max_token_seconds": 900,
    "expires_at": None,
    "owner": OWNER,
    "made_by": API_KEY["id"],
    "last_used_at": "2026-11-21T09:09:11.183640Z",
    "last_run": {
        "jti": "6f0a2c1e",
        "sub": "repo:acme/infra:environment:production",
        "repository": "acme/infra",
        "commit": "9f3182061f1e2cca4702c368cbc039b7dc9d4485",
        "run": "11902837465",
    },
    "disabled_at": None,
    "created_at": "2026-11-21T08:42:04.020406Z",
    "updated_at": "2026-11-21T08:42:04.020406Z",
    "warnings": [],
}
DISABLED_TRUST_POLICY: Final = {**TRUST_POLICY, "disabled_at": "2026-11-21T10:00:00.000000Z"}
NEW_TRUST_POLICY: Final = {
    "name": "example",
    **{
        name: TRUST_POLICY[name]
        for name in ("issuer_id", "conditions", "scopes", "max_token_seconds")
    },
}
TRIAL: Final = {
    "claims": {
        "repository_id": "651234",
        "repository_owner_id": "9919",
        "environment": "staging",
        "event_name": "push",
    }
}
VERDICTS: Final = {
    "would_be_given": False,
    "conditions": [
        {
            "claim": condition["claim"],
            "wanted": {"equals": condition["equals"]},
            "had": TRIAL["claims"][condition["claim"]],
            "met": TRIAL["claims"][condition["claim"]] == condition["equals"],
        }
        for condition in TRUST_POLICY["conditions"]
    ],
    "refusals": [],
}
