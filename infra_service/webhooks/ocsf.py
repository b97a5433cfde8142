"""Audit events as API Activity of the Open Cybersecurity Schema Framework, for a SIEM.

The attributes and enumerations come from class 6003 in https://schema.ocsf.io/1.5.0. The messages
are also valid in later 1.x versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from infra_service import __version__

if TYPE_CHECKING:
    from infra_service.webhooks.models import WebhookEvent

_VERSION: Final = "1.5.0"
_PRODUCT: Final = "infra-service"
_CATEGORY: Final = 6
_CLASS: Final = 6003
_OTHER: Final = 99
_CAPTIONS: Final = {1: "Create", 2: "Read", 3: "Update", 4: "Delete"}
#: The activity for the verb of an action. Other verbs have the activity Other, with their own name.
_ACTIVITIES: Final = {
    **dict.fromkeys(("create", "exchange", "import", "issue", "mint"), 1),
    **dict.fromkeys(("export", "read"), 2),
    **dict.fromkeys(
        (
            "change", "disable", "facts", "force_unlock", "frozen", "identify", "lock", "password",
            "push", "restore", "rotate", "rotate_secret", "second_factor", "undelete", "unfrozen",
            "unlock", "update",
        ),
        3,
    ),
    **dict.fromkeys(("archive", "delete", "prune", "purge", "remove", "revoke"), 4),
}  # fmt: skip
_FAILURES: Final = frozenset({"assertion.refuse", "user.login_failed", "user.login_refused"})
_INFORMATIONAL, _MEDIUM = 1, 3
_SUCCESS, _FAILURE = 1, 2


def ocsf_message(event: WebhookEvent) -> dict[str, Any]:
    """Return an audit event, or the test event of a webhook, as an API Activity event."""
    data = event.data
    action = data.get("action", event.type)
    kind, _, verb = action.partition(".")
    activity = _ACTIVITIES.get(verb, _OTHER)
    is_failure = action in _FAILURES
    resource_id = data.get("resource_id", event.resource_id)
    actor = data.get("actor_name", "")
    return {
        "activity_id": activity,
        "activity_name": _CAPTIONS.get(activity, verb),
        "category_uid": _CATEGORY,
        "category_name": "Application Activity",
        "class_uid": _CLASS,
        "class_name": "API Activity",
        "type_uid": _CLASS * 100 + activity,
        "severity_id": _MEDIUM if is_failure else _INFORMATIONAL,
        "status_id": _FAILURE if is_failure else _SUCCESS,
        "time": int(event.occurred_at.timestamp() * 1000),
        "message": f"{action} of {resource_id} by {actor or 'an unknown actor'}",
        "metadata": _metadata(event, action),
        "actor": _actor(data),
        "api": {
            "operation": action,
            "service": {"name": _PRODUCT},
            **({"request": {"uid": data["request_id"]}} if data.get("request_id") else {}),
        },
        # A command has no address.
        "src_endpoint": {"ip": data["address"]} if data.get("address") else {"name": _PRODUCT},
        "resources": [{"uid": resource_id, "type": kind}] if resource_id else [],
        "unmapped": {
            name: data[name]
            for name in ("client_request_id", "details", "is_truncated")
            if data.get(name)
        },
    }


def _metadata(event: WebhookEvent, action: str) -> dict[str, Any]:
    data = event.data
    return {
        "version": _VERSION,
        "product": {"name": _PRODUCT, "vendor_name": _PRODUCT, "version": __version__},
        "uid": data["id"],
        "event_code": action,
        "log_name": "audit",
        **({"correlation_uid": data["trace_id"]} if data.get("trace_id") else {}),
    }


def _actor(data: dict[str, Any]) -> dict[str, Any]:
    """Return the user with the credential's id, or an app for commands and unknown actors."""
    if not data.get("actor_id") and not data.get("token_id"):
        return {"app_name": data.get("actor_name") or _PRODUCT}
    named = {
        "name": data["actor_name"],
        "uid": data["actor_id"],
        "credential_uid": data["token_id"],
    }
    return {"user": {name: value for name, value in named.items() if value}}
